//! The packages for agents, made from what `biv setup` writes.

use bivouac_engine::setup;

use crate::Result;
use crate::tools::root;

pub(crate) fn run() -> Result<()> {
    let folder = root().join("packages");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let files = setup::packages();
    for (path, text) in &files {
        let path = root().join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    println!("wrote {} files of packages", files.len());
    Ok(())
}
