//! REMEMBER: the event log in SQLite.
//!
//! - [`append`]: the only way in. Events, their projections and the object index in one transaction
//! - [`read`]: events as they are stored, and whether their chain holds
//! - [`projection`], [`reconcile`]: tables that follow from the events, and rebuilding them
//! - [`query`], [`find`]: questions to those tables
//! - [`agents`]: what agents did; [`progress`]: how far the work is; [`search`]: finding both again
//! - [`catalog`]: where objects are; [`shape`]: is the database made as we make it

pub mod agents;
pub mod append;
pub mod catalog;
mod error;
pub mod find;
mod migrate;
pub mod progress;
mod projection;
pub mod query;
pub mod read;
pub mod reconcile;
pub mod runs;
pub mod search;
pub mod shape;
pub mod stored;

use std::cell::Cell;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bivouac_core::redact::Redactor;
use bivouac_core::sabotage::{self, Fault};
use rusqlite::{Connection, OpenFlags};

pub use error::{Error, Result};

/// An open journal.
pub struct Journal {
    connection: Connection,
    access: Access,
    redactor: Redactor,
}

/// What the journal may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Write,
    /// The file system or the version forbids more.
    ReadOnly,
    /// A newer version wrote it.
    Newer {
        found: i64,
    },
}

/// How long another writer is waited for, whose disk may be slow.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    /// Since when this thread has been waiting.
    static SINCE: Cell<Instant> = Cell::new(Instant::now());
}

impl Journal {
    /// Opens a journal, and makes or upgrades it where needed. Two processes must not do that at once:
    /// see [`Journal::open_current`].
    pub fn open(path: &Path) -> Result<Self> {
        check_sqlite()?;
        if path.symlink_metadata().is_err() {
            create_private(path)?;
        }
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        set_up(&connection)?;
        Self::write_to(connection)
    }

    /// Opens a journal that is there. `None` where something has to be made or upgraded first. Its header would tell
    /// as well; but whoever closes a file takes away all locks that its process has on it, those of SQLite too.
    pub fn open_current(path: &Path) -> Result<Option<Self>> {
        check_sqlite()?;
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        set_up(&connection)?;
        match migrate::version(&connection)? >= migrate::known_version() {
            true => Self::write_to(connection).map(Some),
            false => Ok(None),
        }
    }

    fn write_to(mut connection: Connection) -> Result<Self> {
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = if sabotage::is(Fault::JournalNotSynced) { "off" } else { "full" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        let access = match migrate::migrate(&mut connection)? {
            Some(found) => Access::Newer { found },
            None => Access::Write,
        };
        Ok(Self { connection, access, redactor: Redactor::default() })
    }

    /// Opens a journal that cannot be written, without so much as a lock file beside it. What was
    /// committed last may still be in the file beside it, so that is read as well where there is one.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        check_sqlite()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let path = &resolved(path);
        check_files(path)?;
        let name = in_uri(path);
        let log = path.with_extension("db-wal");
        let is_pending = std::fs::metadata(log).is_ok_and(|meta| meta.len() > 0);
        let how = if is_pending { "mode=ro" } else { "immutable=1" };
        let connection = Connection::open_with_flags(format!("file:{name}?{how}"), flags)?;
        set_up(&connection)?;
        migrate::version(&connection)?;
        Ok(Self { connection, access: Access::ReadOnly, redactor: Redactor::default() })
    }

    /// A journal of which nothing is kept, for reading where there is none.
    pub fn empty() -> Result<Self> {
        check_sqlite()?;
        let mut connection = Connection::open_in_memory()?;
        set_up(&connection)?;
        migrate::migrate(&mut connection)?;
        Ok(Self { connection, access: Access::ReadOnly, redactor: Redactor::default() })
    }

    /// From now on, what is indexed goes through this.
    pub fn set_redactor(&mut self, redactor: Redactor) {
        self.redactor = redactor;
    }

    pub fn access(&self) -> Access {
        self.access
    }

    /// Says why nothing can be recorded, where that is so.
    pub fn check_writable(&self) -> Result<()> {
        match self.access {
            Access::Write => Ok(()),
            Access::ReadOnly => Err(Error::ReadOnly),
            Access::Newer { found } => Err(Error::Newer { found, known: migrate::known_version() }),
        }
    }

    fn writable(&mut self) -> Result<&mut Connection> {
        self.check_writable()?;
        Ok(&mut self.connection)
    }
}

/// A path as SQLite's `file:` addresses have it. All that is not plain is given as `%xx`, byte by byte, so that a
/// path that is not UTF-8 is opened under its own name.
fn in_uri(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes
        .map(|byte| match is_plain(*byte) {
            true => char::from(*byte).to_string(),
            false => format!("%{byte:02x}"),
        })
        .collect()
}

fn set_up(connection: &Connection) -> Result<()> {
    connection.busy_handler(Some(wait_for_others))?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(())
}

/// Waits a little, unless it was long enough.
fn wait_for_others(n_asked: i32) -> bool {
    if n_asked == 0 {
        SINCE.set(Instant::now());
    }
    thread::sleep(pause(n_asked));
    SINCE.get().elapsed() < PATIENCE
}

/// Whoever has waited longer asks more often. SQLite's own way is the reverse: where many write, some are never served.
fn pause(n_asked: i32) -> Duration {
    Duration::from_millis(match n_asked {
        ..4 => 1,
        4..100 => 10,
        100..300 => 5,
        _ => 2,
    })
}

/// Opens a database that is not a link. SQLite follows no link to the files beside it either.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let path = resolved(path);
    check_files(&path)?;
    Ok(Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)?)
}

/// SQLite would wait for ever at a FIFO where it expects one of its files.
fn check_files(path: &Path) -> Result<()> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let file = PathBuf::from(name);
        if file.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(Error::NotAFile { path: file });
        }
    }
    Ok(())
}

/// The same file, in a folder without links: SQLite would refuse those as well, and a person may keep all data
/// behind one.
fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// SQLite gives its companions the mode of the database file.
fn create_private(path: &Path) -> Result<()> {
    let created = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path);
    // The umask may have taken away bits that we need ourselves.
    let created =
        created.and_then(|file| file.set_permissions(std::fs::Permissions::from_mode(0o600)));
    match created {
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => Err(Error::DiskFull),
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Error::ReadOnly),
        _ => Ok(()),
    }
}

/// Versions before 3.51.3, and 3.52.0, can drop commits in WAL mode.
fn check_sqlite() -> Result<()> {
    let version = rusqlite::version_number();
    if version < 3_051_003 || version == 3_052_000 {
        return Err(Error::UnsafeSqlite { found: rusqlite::version() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_waited_longer_asks_more_often() {
        assert!((4..10_000).all(|n| pause(n + 1) <= pause(n)));
    }

    #[test]
    fn patience_is_measured_by_the_clock() {
        assert!(wait_for_others(0));
        SINCE.set(Instant::now() - PATIENCE);
        assert!(!wait_for_others(1), "however rarely it could ask");
        assert!(wait_for_others(0), "the next wait is another one");
    }
}
