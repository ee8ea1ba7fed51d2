//! What people would use instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;

use super::measure::{Measured, clock, run_measured};
use crate::Result;
use crate::tools::{command, is_installed};

/// Someone who can save a workspace and bring it back.
pub(super) trait Peer {
    fn name(&self) -> &'static str;
    fn prepare(&self) -> Result<()>;
    fn save(&self) -> Result<Saved>;
    /// `None` for one that cannot.
    fn restore(&self, id: &str) -> Result<Option<Measured>>;
}

pub(super) struct Saved {
    pub(super) id: String,
    pub(super) measured: Measured,
}

/// `None` when the program is not on this machine.
pub(super) fn available(
    name: &str,
    work: &Path,
    store: &Path,
    biv: &Path,
) -> Result<Option<Box<dyn Peer>>> {
    let place = Place { work: work.to_owned(), store: store.to_owned() };
    let peer: Box<dyn Peer> = match name {
        "biv" => Box::new(Biv { place, binary: biv.to_owned() }),
        "walk" => Box::new(Walk { place }),
        "git" => Box::new(Git { place }),
        "restic" => Box::new(Restic { place }),
        "borg" => Box::new(Borg { place }),
        "tar" => Box::new(Tar { place }),
        other => return Err(format!("there is no peer `{other}`").into()),
    };
    let is_here = matches!(name, "biv" | "walk") || is_installed(name);
    Ok(is_here.then_some(peer))
}

struct Place {
    work: PathBuf,
    store: PathBuf,
}

pub(super) struct Biv {
    place: Place,
    binary: PathBuf,
}

impl Biv {
    pub(super) fn new(work: &Path, store: &Path, binary: &Path) -> Self {
        Self {
            place: Place { work: work.to_owned(), store: store.to_owned() },
            binary: binary.to_owned(),
        }
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut biv = command(&self.binary);
        biv.args(words).current_dir(&self.place.work).env("BIV_STORE", &self.place.store);
        biv.env("BIV_STORE_AUTO_GC", "false");
        biv
    }
}

impl Peer for Biv {
    fn name(&self) -> &'static str {
        "biv"
    }

    fn prepare(&self) -> Result<()> {
        run_measured(&mut self.command(&["session", "new"]))?;
        Ok(())
    }

    fn save(&self) -> Result<Saved> {
        let (text, measured) =
            run_measured(&mut self.command(&["checkpoint", "create", "--json"]))?;
        let answer: serde_json::Value = serde_json::from_str(&text)?;
        Ok(Saved { id: answer["id"].as_str().unwrap_or_default().to_owned(), measured })
    }

    fn restore(&self, id: &str) -> Result<Option<Measured>> {
        Ok(Some(run_measured(&mut self.command(&["checkpoint", "rollback", id, "--yes"]))?.1))
    }
}

/// The floor: look at every file once, on all cores, and do nothing else.
struct Walk {
    place: Place,
}

impl Peer for Walk {
    fn name(&self) -> &'static str {
        "bare walk"
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn save(&self) -> Result<Saved> {
        let measured = clock(|| walk(&self.place.work).map(drop))?;
        Ok(Saved { id: String::new(), measured })
    }

    fn restore(&self, _id: &str) -> Result<Option<Measured>> {
        Ok(None)
    }
}

fn walk(folder: &Path) -> Result<u64> {
    let mut folders = Vec::new();
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        } else {
            bytes += entry.metadata()?.len();
        }
    }
    let below: Result<Vec<u64>> = folders.par_iter().map(|folder| walk(folder)).collect();
    Ok(bytes + below?.into_iter().sum::<u64>())
}

/// A shadow repository, as several agents keep one: its own `GIT_DIR`, everything added, a commit.
pub(super) struct Git {
    place: Place,
}

impl Git {
    pub(super) fn new(work: &Path, store: &Path) -> Self {
        Self { place: Place { work: work.to_owned(), store: store.to_owned() } }
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut git = command("git");
        git.args(words).current_dir(&self.place.work);
        git.env("GIT_DIR", &self.place.store).env("GIT_WORK_TREE", &self.place.work);
        for variable in
            ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]
        {
            git.env(variable, "bench");
        }
        git
    }
}

impl Peer for Git {
    fn name(&self) -> &'static str {
        "shadow git"
    }

    fn prepare(&self) -> Result<()> {
        fs::create_dir_all(&self.place.store)?;
        run_measured(&mut self.command(&["init", "-q"]))?;
        run_measured(&mut self.command(&["config", "gc.auto", "0"]))?;
        Ok(())
    }

    fn save(&self) -> Result<Saved> {
        let mut id = String::new();
        let measured = clock(|| {
            run_measured(&mut self.command(&["add", "-A", "--ignore-errors", "."]))?;
            run_measured(&mut self.command(&[
                "commit",
                "-q",
                "--allow-empty",
                "--no-verify",
                "-m",
                "x",
            ]))?;
            id = run_measured(&mut self.command(&["rev-parse", "HEAD"]))?.0.trim().to_owned();
            Ok(())
        })?;
        Ok(Saved { id, measured })
    }

    fn restore(&self, id: &str) -> Result<Option<Measured>> {
        let measured = clock(|| {
            run_measured(&mut self.command(&["clean", "-fdq"]))?;
            run_measured(&mut self.command(&["reset", "-q", "--hard", id])).map(drop)
        })?;
        Ok(Some(measured))
    }
}

struct Restic {
    place: Place,
}

impl Restic {
    fn command(&self, words: &[&str]) -> Command {
        let mut restic = command("restic");
        restic.args(words).current_dir(&self.place.work).env("RESTIC_PASSWORD", "x");
        restic
            .env("RESTIC_REPOSITORY", &self.place.store)
            .env("RESTIC_CACHE_DIR", self.place.store.with_extension("cache"));
        restic
    }
}

impl Peer for Restic {
    fn name(&self) -> &'static str {
        "restic"
    }

    fn prepare(&self) -> Result<()> {
        run_measured(&mut self.command(&["init", "-q"]))?;
        Ok(())
    }

    fn save(&self) -> Result<Saved> {
        let (text, measured) = run_measured(&mut self.command(&["backup", "--json", "."]))?;
        let last: serde_json::Value =
            serde_json::from_str(text.trim().lines().last().unwrap_or_default())?;
        Ok(Saved { id: last["snapshot_id"].as_str().unwrap_or_default().to_owned(), measured })
    }

    fn restore(&self, id: &str) -> Result<Option<Measured>> {
        let target = self.place.work.to_string_lossy().into_owned();
        Ok(Some(run_measured(&mut self.command(&["restore", "-q", id, "--target", &target]))?.1))
    }
}

struct Borg {
    place: Place,
}

impl Borg {
    fn command(&self, words: &[&str]) -> Command {
        let mut borg = command("borg");
        borg.args(words)
            .current_dir(&self.place.work)
            .env("BORG_BASE_DIR", self.place.store.with_extension("base"));
        borg.env("BORG_REPO", &self.place.store)
            .env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
        borg
    }
}

impl Peer for Borg {
    fn name(&self) -> &'static str {
        "borg"
    }

    fn prepare(&self) -> Result<()> {
        run_measured(&mut self.command(&["init", "-e", "none"]))?;
        Ok(())
    }

    fn save(&self) -> Result<Saved> {
        let count = run_measured(&mut self.command(&["list", "--short"]))?.0.lines().count();
        let id = format!("c{count}");
        let measured =
            run_measured(&mut self.command(&["create", "-C", "zstd,1", &format!("::{id}"), "."]))?
                .1;
        Ok(Saved { id, measured })
    }

    fn restore(&self, id: &str) -> Result<Option<Measured>> {
        Ok(Some(run_measured(&mut self.command(&["extract", &format!("::{id}")]))?.1))
    }
}

/// A whole archive each time.
struct Tar {
    place: Place,
}

impl Peer for Tar {
    fn name(&self) -> &'static str {
        "tar.gz"
    }

    fn prepare(&self) -> Result<()> {
        Ok(fs::create_dir_all(&self.place.store)?)
    }

    fn save(&self) -> Result<Saved> {
        let id = self.place.store.join("all.tar.gz").to_string_lossy().into_owned();
        let measured =
            run_measured(command("tar").args(["-czf", &id, "."]).current_dir(&self.place.work))?.1;
        Ok(Saved { id, measured })
    }

    fn restore(&self, id: &str) -> Result<Option<Measured>> {
        Ok(Some(run_measured(command("tar").args(["-xzf", id]).current_dir(&self.place.work))?.1))
    }
}
