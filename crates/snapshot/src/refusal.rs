//! Which errors of the operating system concern one path only. Such a path is left alone and reported,
//! and the rest of the plan is carried out. Every other error (a full disk, a failing one, a workspace
//! that became read-only) ends the operation, and what it changed is put back.

use std::io;

use bivouac_core::operation::WhyLeft;
use rustix::io::Errno;

use crate::beneath::Root;

/// Why a change of one path in the workspace failed, if the error concerns that path only.
pub(crate) fn refusal(root: &Root, error: &io::Error) -> Option<WhyLeft> {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        // The path lies on another mount, or is itself a mount point.
        Some(Errno::XDEV | Errno::BUSY) => Some(WhyLeft::OtherFileSystem),
        // A mount inside the workspace can be read-only while the workspace is not.
        Some(Errno::ROFS) if !root.is_read_only() => Some(WhyLeft::OtherFileSystem),
        // `chattr +i` and `+a`, and files of other users in a sticky folder.
        Some(Errno::PERM) => Some(WhyLeft::NotPermitted),
        Some(Errno::ACCESS) => Some(WhyLeft::NoAccess),
        // Someone removed it, put something in its place, or replaced a folder on the way.
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::EXIST | Errno::ISDIR) => {
            Some(WhyLeft::ChangedMeanwhile)
        }
        // What `move_to_free` says where it has to look for itself.
        None if error.kind() == io::ErrorKind::AlreadyExists => Some(WhyLeft::ChangedMeanwhile),
        _ => None,
    }
}

/// The same for giving a staged file its owner or its mode. An owner that has no number in this user
/// namespace cannot be given, nor can any owner on file systems that have none.
pub(crate) fn refusal_to_give(root: &Root, error: &io::Error) -> Option<WhyLeft> {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::INVAL | Errno::OVERFLOW) => Some(WhyLeft::NotPermitted),
        _ => refusal(root, error),
    }
}
