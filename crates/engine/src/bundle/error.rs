//! What can be wrong with a bundle.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BadBundle {
    #[error("`{}` is not a bundle: {what}", path.display())]
    NotOne { path: PathBuf, what: String },
    #[error("the bundle has version {found}, and this program reads up to {known}")]
    Newer { found: u64, known: u32 },
    #[error("`{file}` is missing from the bundle")]
    Missing { file: String },
    #[error("`{file}` in the bundle is not what its manifest says")]
    Mismatch { file: String },
    #[error("`{file}` in the bundle cannot be used: {what}")]
    Malformed { file: String, what: String },
    #[error("the bundle holds `{path}`, {what}")]
    Refused { path: String, what: &'static str },
    #[error("`{file}` in the bundle is too large: {what}")]
    TooLarge { file: String, what: &'static str },
}

impl BadBundle {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Newer { .. } => "upgrade biv",
            Self::NotOne { .. } => "`biv export bundle` writes one",
            Self::Refused { .. } | Self::TooLarge { .. } => {
                "nothing was recorded; do not trust where it came from"
            }
            Self::Missing { .. } | Self::Mismatch { .. } | Self::Malformed { .. } => {
                "nothing was recorded; export it once more"
            }
        }
    }

    pub(super) fn malformed(file: &str, what: &dyn std::fmt::Display) -> Self {
        Self::Malformed { file: file.to_owned(), what: what.to_string() }
    }
}
