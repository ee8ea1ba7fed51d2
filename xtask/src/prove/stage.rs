//! A small world that is set up once and brought back before every trial, at the same path: a workspace is known
//! by where it is.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bivouac_testkit::TestEnv;

use crate::Result;

/// A world, and how it was when it was kept.
pub(super) struct Stage {
    pub(super) env: TestEnv,
    kept: Option<tempfile::TempDir>,
}

impl Stage {
    /// A workspace with a repository, a home, a store, and something outside that is nobody's business.
    pub(super) fn new(binary: &Path) -> Self {
        Self::with(binary, |_| Ok(())).expect("a new folder takes files")
    }

    /// The same, with something done to its folders before anything is in them.
    pub(super) fn with(
        binary: &Path,
        prepare: impl FnOnce(&TestEnv) -> Result<()>,
    ) -> Result<Self> {
        let env = TestEnv::new_in(&binary.to_string_lossy(), &folder());
        prepare(&env)?;
        env.git(&["init", "-q", "-b", "main"]);
        fs::create_dir(env.root().join("outside"))?;
        fs::write(env.root().join("outside/mine"), "not yours")?;
        Ok(Self { env, kept: None })
    }

    /// From now on, this is how it was.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        let kept = tempfile::Builder::new().prefix("biv-kept-").tempdir_in(folder())?;
        copy(self.env.root(), kept.path())?;
        self.kept = Some(kept);
        Ok(())
    }

    /// Makes everything as it was.
    pub(super) fn bring_back(&self) -> io::Result<()> {
        let kept = self.kept.as_ref().expect("a stage is kept before it is brought back");
        for entry in fs::read_dir(self.env.root())? {
            let path = entry?.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        copy(kept.path(), self.env.root())?;
        // Later than whatever was done to set it up, and never so late that the month ends.
        self.env.set_minute(120);
        Ok(())
    }

    /// Where strace writes, which is nobody's business either.
    pub(super) fn trace(&self) -> PathBuf {
        self.env.root().join("trace")
    }

    /// Where something outside of the workspace is.
    pub(super) fn outside(&self) -> PathBuf {
        self.env.root().join("outside")
    }
}

/// Where stages are set up: in memory where there is some, as thousands of them wait for the disk at every turn.
pub(super) fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Files, modes, links, times of modification.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_symlink() {
            symlink(fs::read_link(&path)?, &place)?;
            continue;
        }
        if meta.is_dir() {
            fs::create_dir_all(&place)?;
            copy(&path, &place)?;
        } else if meta.is_file() {
            fs::copy(&path, &place)?;
        } else {
            continue;
        }
        fs::File::open(&place)?.set_modified(meta.modified()?)?;
        fs::set_permissions(&place, meta.permissions())?;
    }
    Ok(())
}
