//! Renames between two folders that are held open, in one step each where the file system can.

use std::io;

use rustix::fs::RenameFlags;

use crate::beneath::{Root, is_gone};

/// A name below a folder that is held open: one end of a rename.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    root: &'a Root,
    path: &'a [u8],
}

impl Root {
    pub(crate) const fn spot<'a>(&'a self, path: &'a [u8]) -> Spot<'a> {
        Spot { root: self, path }
    }

    /// Moves `from` to `to`. What is there is replaced.
    pub fn replace(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        rename(self.spot(from), self.spot(to), RenameFlags::empty())
    }

    /// Moves `from` to `to`, where nothing may be.
    pub fn move_to_free(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        move_to_free(self.spot(from), self.spot(to))
    }
}

/// Moves `from` to `to`, where nothing may be.
pub(crate) fn move_to_free(from: Spot<'_>, to: Spot<'_>) -> io::Result<()> {
    match rename(from, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(&error) => match to.root.stat_beneath(to.path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if is_gone(&error) => rename(from, to, RenameFlags::empty()),
            Err(error) => Err(error),
        },
        other => other,
    }
}

/// Swaps two things in one step: there is no moment in which either is missing. Where the file
/// system cannot, `theirs` is missing for a moment, and found at `ours` afterwards all the same. If it
/// fails, both are where they were.
pub(crate) fn exchange(ours: Spot<'_>, theirs: Spot<'_>) -> io::Result<()> {
    match rename(ours, theirs, RenameFlags::EXCHANGE) {
        Err(error) if is_unsupported(&error) => {
            let aside = [ours.path, b".aside"].concat();
            let aside = ours.root.spot(&aside);
            move_to_free(theirs, aside)?;
            if let Err(error) = move_to_free(ours, theirs) {
                // An interrupted run's `.aside` is put back by the next one, and so is this if it must be.
                let _left_aside = move_to_free(aside, theirs);
                return Err(error);
            }
            move_to_free(aside, ours)
        }
        other => other,
    }
}

fn rename(from: Spot<'_>, to: Spot<'_>, flags: RenameFlags) -> io::Result<()> {
    let (from_folder, from_name) = from.root.folder_of(from.path)?;
    let (to_folder, to_name) = to.root.folder_of(to.path)?;
    Ok(rustix::fs::renameat_with(from_folder, from_name, to_folder, to_name, flags)?)
}

/// Some file systems do not support renames with flags.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_leaves_both() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one"), "1").unwrap();
        std::fs::write(folder.path().join("two"), "2").unwrap();
        let root = Root::open(folder.path()).unwrap();
        exchange(root.spot(b"one"), root.spot(b"two")).unwrap();
        assert_eq!(std::fs::read(folder.path().join("one")).unwrap(), b"2");
        assert!(root.move_to_free(b"one", b"two").is_err());
        assert_eq!(std::fs::read(folder.path().join("two")).unwrap(), b"1");
    }
}
