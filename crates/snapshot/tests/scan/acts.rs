//! What can happen to a workspace between two scans, and what somebody sees of it who watches its folders.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use bivouac_snapshot::since::Changed;
use proptest::prelude::*;

use crate::stage::{Moment, Stage, paths};

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Write {
        path: usize,
        letter: u8,
        length: usize,
    },
    /// Other bytes of the same length, with the old modification time put back.
    Disguise {
        path: usize,
        letter: u8,
    },
    Remove {
        path: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Folder {
        path: usize,
    },
    Link {
        path: usize,
        target: usize,
    },
    /// A second name for a file.
    Share {
        path: usize,
        target: usize,
    },
    Mode {
        path: usize,
        mode: u32,
    },
    Ignore {
        path: usize,
        rules: usize,
    },
    IgnoreEverywhere {
        rules: usize,
    },
    /// Makes a folder the top of a repository, or changes what that tracks.
    Track {
        path: usize,
        index: usize,
    },
    Scan(Moment),
}

const PATHS: &[&str] = &["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "x/y/z", "x/y", "x", "d/e", "d"];
const RULES: &[&str] = &["", "a\n", "b\n", "*\n!.gitignore\n", "/d/\n", "e/\n!a\n", "x/y\n"];
const INDEXES: &[&str] = &["", "a\n", "b\nd/b\n", "e/a\nd/e/a\n", "x/y/z\n"];

pub(crate) fn any_act() -> impl Strategy<Value = Act> {
    let path = 0..PATHS.len();
    let two = (path.clone(), path.clone());
    prop_oneof![
        5 => (path.clone(), b'a'..b'e', 0usize..5)
            .prop_map(|(path, letter, length)| Act::Write { path, letter, length }),
        3 => (path.clone(), b'a'..b'e').prop_map(|(path, letter)| Act::Disguise { path, letter }),
        2 => path.clone().prop_map(|path| Act::Remove { path }),
        2 => two.clone().prop_map(|(from, to)| Act::Rename { from, to }),
        1 => path.clone().prop_map(|path| Act::Folder { path }),
        1 => two.clone().prop_map(|(path, target)| Act::Link { path, target }),
        1 => two.prop_map(|(path, target)| Act::Share { path, target }),
        1 => (path.clone(), prop::sample::select(vec![0o600, 0o644, 0o755]))
            .prop_map(|(path, mode)| Act::Mode { path, mode }),
        2 => (path.clone(), 0..RULES.len()).prop_map(|(path, rules)| Act::Ignore { path, rules }),
        1 => (0..RULES.len()).prop_map(|rules| Act::IgnoreEverywhere { rules }),
        1 => (path, 0..INDEXES.len()).prop_map(|(path, index)| Act::Track { path, index }),
        2 => Just(Act::Scan(Moment::AtOnce)),
        5 => Just(Act::Scan(Moment::Rested)),
    ]
}

/// What a watcher saw, from the top of the workspace.
#[derive(Default)]
pub(crate) struct Seen {
    paths: Vec<String>,
    trees: Vec<String>,
}

impl Seen {
    pub(crate) fn changed(&self) -> Changed {
        let texts = |all: &[String]| paths(&all.iter().map(String::as_str).collect::<Vec<_>>());
        Changed::new(texts(&self.paths), texts(&self.trees))
    }

    fn path(&mut self, stage: &Stage, path: &Path) {
        self.paths.push(told(stage, path));
    }

    /// A folder that came, from wherever.
    fn tree(&mut self, stage: &Stage, path: &Path) {
        self.trees.push(told(stage, path));
    }
}

fn told(stage: &Stage, path: &Path) -> String {
    path.strip_prefix(&stage.work).unwrap().to_str().unwrap().to_owned()
}

pub(crate) fn act(stage: &Stage, act: &Act, seen: &mut Seen) {
    let path = |n: usize| name_itself(&stage.work.join(PATHS[n]));
    let _in_the_way = match act {
        Act::Write { path: at, letter, length } => {
            let text = vec![*letter; *length];
            make_folder(stage, stage.work.join(PATHS[*at]).parent().unwrap(), seen)
                .and_then(|()| write(stage, &stage.work.join(PATHS[*at]), &text, seen))
        }
        Act::Disguise { path: at, letter } => {
            path(*at).and_then(|path| disguise(stage, &path, *letter, seen))
        }
        Act::Remove { path: at } => path(*at).and_then(|path| {
            fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path))?;
            seen.path(stage, &path);
            Ok(())
        }),
        Act::Rename { from, to } => {
            path(*from).and_then(|from| rename(stage, &from, &path(*to)?, seen))
        }
        Act::Folder { path: at } => make_folder(stage, &stage.work.join(PATHS[*at]), seen),
        Act::Link { path: at, target } => path(*at).and_then(|path| {
            symlink(PATHS[*target], &path)?;
            seen.path(stage, &path);
            Ok(())
        }),
        Act::Share { path: at, target } => {
            path(*at).and_then(|new| share(stage, &path(*target)?, &new, seen))
        }
        Act::Mode { path: at, mode } => path(*at).and_then(|path| {
            // A folder has to stay one that can be looked into.
            let mode = if path.is_dir() { mode | 0o700 } else { *mode };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            seen.path(stage, &path.canonicalize()?);
            Ok(())
        }),
        Act::Ignore { path: at, rules } => {
            let path = stage.work.join(PATHS[*at]);
            let folder = if path.is_dir() { &path } else { &stage.work };
            write(stage, &folder.join(".gitignore"), RULES[*rules].as_bytes(), seen)
        }
        Act::IgnoreEverywhere { rules } => fs::write(stage.global_ignore(), RULES[*rules]),
        Act::Track { path: at, index } => track(stage, &stage.work.join(PATHS[*at]), *index, seen),
        Act::Scan(_) => Ok(()),
    };
}

/// A path without links on the way: a watcher tells the folder a thing is in.
fn name_itself(path: &Path) -> io::Result<PathBuf> {
    Ok(path.parent().unwrap().canonicalize()?.join(path.file_name().unwrap()))
}

fn make_folder(stage: &Stage, path: &Path, seen: &mut Seen) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    make_folder(stage, path.parent().unwrap(), seen)?;
    let path = name_itself(path)?;
    fs::create_dir(&path)?;
    seen.path(stage, &path);
    seen.tree(stage, &path);
    Ok(())
}

fn write(stage: &Stage, path: &Path, bytes: &[u8], seen: &mut Seen) -> io::Result<()> {
    fs::write(path, bytes)?;
    seen.path(stage, &path.canonicalize()?);
    Ok(())
}

fn disguise(stage: &Stage, path: &Path, letter: u8, seen: &mut Seen) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Ok(());
    }
    write(stage, path, &vec![letter; meta.len() as usize], seen)?;
    File::options().write(true).open(path)?.set_modified(meta.modified()?)
}

fn rename(stage: &Stage, from: &Path, to: &Path, seen: &mut Seen) -> io::Result<()> {
    fs::rename(from, to)?;
    if fs::symlink_metadata(to)?.is_dir() {
        seen.tree(stage, to);
    }
    seen.path(stage, from);
    seen.path(stage, to);
    Ok(())
}

/// A watcher of folders only hears of the new name. That is enough where the name is captured; here it may be
/// ignored, and then only somebody who watches the file knows. Links are left out: nobody can write to one.
fn share(stage: &Stage, target: &Path, new: &Path, seen: &mut Seen) -> io::Result<()> {
    if !fs::symlink_metadata(target)?.is_file() {
        return Ok(());
    }
    fs::hard_link(target, new)?;
    seen.path(stage, target);
    seen.path(stage, new);
    Ok(())
}

/// Nobody watches what is in `.git`, but everybody sees it come.
fn track(stage: &Stage, path: &Path, index: usize, seen: &mut Seen) -> io::Result<()> {
    let folder = if path.is_dir() { path.canonicalize()? } else { stage.work.clone() };
    let git = folder.join(".git");
    if !git.exists() {
        seen.path(stage, &git);
    }
    fs::write(git, INDEXES[index])
}
