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
    #[error("a path has to be text here, and is not")]
    NotText,
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
            Self::TooSlow { .. }
            | Self::Failed { .. }
            | Self::Unexpected { .. }
            | Self::Io { .. }
            | Self::Database(_)
            | Self::NotText => None,
        }
    }
}
