//! What can go wrong with the journal.

use std::path::PathBuf;

use bivouac_core::event::BadEvent;
use bivouac_core::text::{Name, printable};
use rusqlite::ErrorCode;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("could not use the journal")]
    Sqlite(#[source] rusqlite::Error),
    #[error("the journal is damaged")]
    Damaged(#[source] rusqlite::Error),
    #[error("could not read the journal's log")]
    UnreadableLog(#[source] std::io::Error),
    #[error("`{}` is not a regular file, so the journal is not opened", path.display())]
    NotAFile { path: PathBuf },
    #[error("the journal is busy: another process has been writing for too long")]
    Busy,
    #[error("the store is read-only")]
    ReadOnly,
    #[error("the disk is full")]
    DiskFull,
    #[error("the store was written by a newer version (format {found}; this one knows {known})")]
    Newer { found: i64, known: i64 },
    #[error("the SQLite in this build ({found}) can lose commits")]
    UnsafeSqlite { found: &'static str },
    #[error("the name `{name}` is already taken in this session")]
    NameTaken { name: Name },
    #[error("there is already a {noun} `{}`", printable(key))]
    KeyTaken { noun: &'static str, key: String },
    #[error("the session's last event is number {found}, and {expected} was expected")]
    Moved { expected: i64, found: i64 },
    #[error("event {sequence} does not match its hash")]
    BrokenChain { sequence: i64 },
    #[error("event {sequence} cannot be read")]
    BadEvent { sequence: i64, source: BadEvent },
    #[error("a row of `{table}` cannot be read: {what}")]
    BadRow { table: &'static str, what: String },
}

impl Error {
    /// What the person can do about it, when we know.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Damaged(_) => Some(
                "run `biv reconcile` to rebuild it from the packs; the damaged file is kept aside",
            ),
            Self::BadRow { .. } => {
                Some("run `biv reconcile` to rebuild the tables from the events")
            }
            Self::BrokenChain { .. } | Self::BadEvent { .. } => {
                Some("run `biv verify` to see what is affected")
            }
            Self::NotAFile { .. } => {
                Some("look at who put it there; remove it, or name another store with `--store`")
            }
            Self::Busy => Some("try again; if it stays so, look for a process that hangs"),
            Self::ReadOnly => {
                Some("set `BIV_STORE` to a folder you can write, or change its permissions")
            }
            Self::DiskFull => {
                Some("free some disk space, or run `biv gc` to give back what is no longer needed")
            }
            Self::Newer { .. } => {
                Some("install the newer version of biv; until then the store can only be read")
            }
            Self::UnsafeSqlite { .. } => Some("build biv with the bundled SQLite"),
            Self::KeyTaken { .. } => Some("choose another id, or change the one that is there"),
            Self::Moved { .. } => Some("look at what happened since, then say it again"),
            Self::NameTaken { .. } => Some("choose another name, or leave it out"),
            Self::Sqlite(cause) if is_missing_table(cause) => {
                Some("run `biv reconcile` to rebuild the tables from the events")
            }
            Self::Sqlite(_) | Self::UnreadableLog(_) => None,
        }
    }

    /// Is the database itself beyond use?
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_))
    }
}

fn is_of_another_kind(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
    };
    matches!(
        error,
        FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..)
    )
}

fn is_missing_table(error: &rusqlite::Error) -> bool {
    let text = error.to_string();
    text.contains("no such table")
        || text.contains("no such column")
        || text.contains("has no column")
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            // Only text was put where text is read, and numbers where numbers are.
            None if is_of_another_kind(&error) => Self::Damaged(error),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            _ => Self::Sqlite(error),
        }
    }
}
