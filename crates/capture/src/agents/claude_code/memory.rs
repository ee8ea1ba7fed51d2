//! Where Claude Code keeps what it remembers of a project. The folder's name is the project's path with
//! everything but letters and digits made a dash, so two projects can come to the same name.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The folder of a project, whether it is there or not.
pub fn project_folder(home: &Path, workspace: &Path) -> PathBuf {
    let name: String = workspace
        .to_string_lossy()
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .collect();
    super::folder(home).join("projects").join(name)
}

/// Whose folder it is, by the conversations in it: the first that says where it took place.
pub fn owner(folder: &Path) -> Option<PathBuf> {
    const MANY: usize = 20;
    let entries = fs::read_dir(folder).ok()?.flatten();
    let files = entries.map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files.take(MANY).find_map(|path| place_in(&path))
}

fn place_in(path: &Path) -> Option<PathBuf> {
    const MANY: usize = 50;
    let file = fs::File::open(path).ok()?;
    let lines = BufReader::new(file).lines().take(MANY).map_while(Result::ok);
    let mut places = lines.filter_map(|line| {
        let record = crate::agents::parse(line.as_bytes()).ok()?;
        record.get("cwd")?.as_str().map(PathBuf::from)
    });
    places.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_the_path_and_owned_by_who_worked_there() {
        let home = tempfile::tempdir().unwrap();
        let folder = project_folder(home.path(), Path::new("/code/my-app"));
        assert!(folder.ends_with("projects/-code-my-app"), "{}", folder.display());
        assert_eq!(folder, project_folder(home.path(), Path::new("/code/my/app")));
        assert_eq!(owner(&folder), None);
        fs::create_dir_all(&folder).unwrap();
        let lines = "{\"type\":\"summary\"}\n{\"type\":\"user\",\"cwd\":\"/code/my/app\"}\n";
        fs::write(folder.join("a.jsonl"), lines).unwrap();
        assert_eq!(owner(&folder), Some(PathBuf::from("/code/my/app")));
    }
}
