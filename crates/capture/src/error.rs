//! What can go wrong when others are asked.

use std::io;
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
    #[error("`{program}` answered something unexpected: {what}")]
    Unexpected { program: String, what: &'static str },
}

impl Error {
    /// What the person can do about it, when we know.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotStarted { .. } => Some("check that it is installed and on the `PATH`"),
            Self::TooSlow { .. } | Self::Failed { .. } | Self::Unexpected { .. } => None,
        }
    }
}
