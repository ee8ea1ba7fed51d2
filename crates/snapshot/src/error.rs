//! What can go wrong between a workspace and its stored trees.

use std::io;
use std::path::{Path, PathBuf};

use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("could not read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write `{}`", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("could not read `{path}` in the workspace")]
    ReadWorkspace { path: RelPath, source: io::Error },
    #[error("could not change `{path}` in the workspace")]
    WriteWorkspace { path: RelPath, source: io::Error },
    #[error("object {id} is missing from the store")]
    Missing { id: ObjectId },
    #[error("pack `{}` is damaged at byte {offset}: {what}", path.display())]
    Damaged { path: PathBuf, offset: u64, what: &'static str },
    #[error("object {id} is not a valid {what}")]
    Malformed { id: ObjectId, what: &'static str },
    #[error("could not learn what git tracks: {why}")]
    Tracked { why: String },
    #[error("could not use the object index")]
    Catalog(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("`{path}` was replaced while it was being restored, so nothing more was changed")]
    StagingReplaced { path: RelPath },
    #[error("`{}` is not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("it was called off, and nothing was changed")]
    Cancelled,
}

impl Error {
    pub(crate) fn read(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn write(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Write { path, source }
    }

    pub(crate) fn write_workspace(path: &RelPath) -> impl FnOnce(io::Error) -> Self {
        let path = path.clone();
        move |source| Self::WriteWorkspace { path, source }
    }

    /// Is it the stored bytes that are bad, rather than the moment?
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Damaged { .. } | Self::Malformed { .. })
    }

    /// What the person can do about it, when we know.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Tracked { .. } => Some("see what `git ls-files` says in this folder"),
            Self::Read { source, .. }
            | Self::Write { source, .. }
            | Self::ReadWorkspace { source, .. }
            | Self::WriteWorkspace { source, .. } => hint_for(source),
            Self::Missing { .. } | Self::Damaged { .. } | Self::Malformed { .. } => {
                Some("run `biv verify` to see which checkpoints are affected")
            }
            Self::StagingReplaced { .. } => {
                Some("another user or program changes this workspace; stop it and try again")
            }
            Self::Catalog(_) | Self::Cancelled => None,
            Self::NotEmpty { .. } => Some("choose a new or an empty folder"),
        }
    }
}

/// The remedy for what the operating system said.
pub fn hint_for(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some disk space, or run `biv gc` to give back what is no longer needed")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("the file system is read-only; set `BIV_STORE` to a folder you can write")
        }
        io::ErrorKind::PermissionDenied => Some("check who owns it and what its permissions are"),
        _ => None,
    }
}
