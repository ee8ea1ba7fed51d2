//! SQLite databases in a workspace. `X`, `X-journal`, `X-shm` and `X-wal` are one thing: captured at one
//! moment or not at all, restored together or not at all.
//!
//! - `read` takes the bytes of all files of a database at one moment
//! - `scan` decides which files of a scan belong to a database, and records the result
//! - `restore` keeps the files of a database together in a plan and while the plan is carried out
//! - [`in_use`] asks whether another process has a database open
//!
//! The files of other people's databases are read as bytes. SQLite itself never opens them here: opening a
//! database can create `X-shm`, run recovery and write a checkpoint into `X`.

pub mod in_use;
pub(crate) mod read;
mod restore;
pub(crate) mod scan;

use std::fs::File;
use std::os::unix::fs::FileExt;

pub(crate) use restore::{
    Candidate, bind, complete, is_touchable, set_apart, spread, take_back_incomplete,
};
pub use restore::{carried_out, set_apart_changed};

/// The first bytes of every database that is not encrypted.
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What SQLite appends to the name of a database: the rollback journal, the index of the write-ahead log,
/// and the write-ahead log.
const SUFFIXES: [&[u8]; 3] = [b"-journal", b"-shm", b"-wal"];

/// The place of each file in [`members`].
pub(crate) const MAIN: usize = 0;
pub(crate) const JOURNAL: usize = 1;
pub(crate) const SHM: usize = 2;
pub(crate) const WAL: usize = 3;
pub(crate) const N_MEMBERS: usize = 4;

/// The names, or paths, of all files a database can have.
pub(crate) fn members(main: &[u8]) -> [Vec<u8>; N_MEMBERS] {
    let with = |suffix: &[u8]| [main, suffix].concat();
    [main.to_vec(), with(SUFFIXES[0]), with(SUFFIXES[1]), with(SUFFIXES[2])]
}

/// The database that a name belongs to, if the name is one that SQLite forms for a sibling.
pub(crate) fn main_of(name: &[u8]) -> Option<&[u8]> {
    let main = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(*suffix))?;
    (!main.is_empty() && !main.ends_with(b"/")).then_some(main)
}

/// Does a file begin as a database does? An empty file can become one: SQLite writes the first page of a new
/// database after its journal.
pub(crate) fn is_main(file: &File) -> bool {
    let mut first = [0; MAGIC.len()];
    match file.read_at(&mut first, 0) {
        Ok(0) => true,
        Ok(_) => first == *MAGIC,
        Err(_) => false,
    }
}

/// The header of a write-ahead log. SQLite puts new salts into it whenever it starts the log anew, so the
/// same header means that the log only grew.
pub(crate) fn wal_header(file: &File) -> Option<[u8; 32]> {
    let mut header = [0; 32];
    file.read_exact_at(&mut header, 0).ok()?;
    let magic = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    matches!(magic, 0x377f_0682 | 0x377f_0683).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_told_by_their_names() {
        let check = |name: &str, main: Option<&str>| {
            assert_eq!(main_of(name.as_bytes()), main.map(str::as_bytes), "{name}");
        };
        check("app.db-wal", Some("app.db"));
        check("data/app.db-shm", Some("data/app.db"));
        check("app.db-journal", Some("app.db"));
        check("app.db", None);
        check("-wal", None);
        check("data/-wal", None);
        check("app.db-wal.kept", None);
    }
}
