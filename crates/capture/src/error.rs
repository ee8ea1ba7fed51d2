//! What can go wrong when others are asked.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("could not start `{program}`")]
    NotStarted { program: String, source: io::Error },
    #[error("`{program}` did not answer within {} seconds", within.as_secs())]
    TooSlow { program: String, within: Duration },
    #[error("`{program}` failed: {message}")]
    Failed { program: String, message: String },
    #[error("could not use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("could not read the agent's database")]
    Database(#[from] rusqlite::Error),
    #[error("a path is not valid UTF-8, and the program that would be given it only takes text")]
    NotText,
    #[error(
        "the repository's own configuration defines `{name}`, a program that a stash would run"
    )]
    RepositoryFilter { name: String },
    #[error(
        "`{path}` is a submodule, and a stash would run the programs that its own configuration names"
    )]
    SubmoduleStash { path: String },
    #[error("`{}` is not an index that can be read: {why}", path.display())]
    BadIndex { path: PathBuf, why: String },
    #[error("`{program}` answered something unexpected: {what}")]
    Unexpected { program: String, what: &'static str },
}

impl Error {
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { path, source }
    }

    /// What the person can do about it, when we know.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotStarted { .. } => Some("check that it is installed and on the `PATH`"),
            Self::RepositoryFilter { .. } | Self::SubmoduleStash { .. } => {
                Some("leave `--stash` out, or run `git stash` yourself if you trust the program")
            }
            Self::TooSlow { .. }
            | Self::Failed { .. }
            | Self::Unexpected { .. }
            | Self::Io { .. }
            | Self::BadIndex { .. }
            | Self::Database(_) => None,
            Self::NotText => Some(
                "use a store, workspace and home folder with UTF-8 names for this; `biv resume --brief --print` needs none",
            ),
        }
    }
}
