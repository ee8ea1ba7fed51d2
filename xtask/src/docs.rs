//! Documents made from the command line's own help: `docs/cli.md`, and man pages on request.

use std::path::PathBuf;

use bivouac::cli::{Cli, reference};
use clap::CommandFactory;

use crate::Result;
use crate::tools::root;

#[derive(clap::Args)]
pub(crate) struct DocsArgs {
    /// Also write man pages into this folder
    #[arg(long, value_name = "DIR")]
    man: Option<PathBuf>,
}

pub(crate) fn run(args: &DocsArgs) -> Result<()> {
    let path = root().join("docs/cli.md");
    std::fs::write(&path, reference::markdown())?;
    println!("wrote docs/cli.md");
    if let Some(folder) = &args.man {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)?;
        println!("wrote man pages into {}", folder.display());
    }
    Ok(())
}
