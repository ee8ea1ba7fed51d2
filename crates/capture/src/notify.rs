//! What the file system says about folders, as it happens. Linux says it (inotify); elsewhere nobody does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Tells what happens in the folders it watches.
pub struct Notifier {
    queue: OwnedFd,
}

/// A folder under watch.
pub type WatchId = i32;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A name in the folder is new, gone, or another than before.
    Changed { watch: WatchId, name: Vec<u8> },
    /// A folder by this name came to be, or was moved here.
    FolderCame { watch: WatchId, name: Vec<u8> },
    /// A folder by this name is gone.
    FolderWent { watch: WatchId, name: Vec<u8> },
    /// The folder itself is gone, or is elsewhere.
    Gone { watch: WatchId },
    /// More happened than could be told.
    Overflow,
}

#[cfg(target_os = "linux")]
mod inotify {
    use std::mem::MaybeUninit;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{Notice, Notifier, Path, WatchId, io};

    /// What tells us that a name in a folder is not what it was. A program that writes through memory
    /// is only heard of when it lets go of the file.
    const WANTED: WatchFlags = WatchFlags::MODIFY
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CLOSE_WRITE)
        .union(WatchFlags::CREATE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MOVED_FROM)
        .union(WatchFlags::MOVED_TO)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR)
        .union(WatchFlags::DONT_FOLLOW);

    impl Notifier {
        pub fn new() -> io::Result<Self> {
            let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            Ok(Self { queue })
        }

        /// Watches a folder, not what is below its subfolders. The same folder has the same id.
        pub fn watch(&self, folder: &Path) -> io::Result<WatchId> {
            Ok(inotify::add_watch(&self.queue, folder, WANTED)?)
        }

        pub fn forget(&self, watch: WatchId) {
            // One that is gone was forgotten by itself.
            let _gone = inotify::remove_watch(&self.queue, watch);
        }

        /// Everything that happened until now and was not told yet.
        pub fn drain(&self) -> io::Result<Vec<Notice>> {
            let mut buffer = [MaybeUninit::uninit(); 16 << 10];
            let mut reader = Reader::new(&self.queue, &mut buffer);
            let mut notices = Vec::new();
            loop {
                match reader.next() {
                    Ok(event) => {
                        let name = event.file_name().map(|name| name.to_bytes().to_vec());
                        notices.extend(told(event.wd(), event.events(), name));
                    }
                    Err(Errno::WOULDBLOCK) => return Ok(notices),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn told(watch: WatchId, what: ReadFlags, name: Option<Vec<u8>>) -> Option<Notice> {
        // What lies below a disk that was taken away, nobody has told of.
        if what.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
            return Some(Notice::Overflow);
        }
        let is_folder = what.contains(ReadFlags::ISDIR);
        let came = ReadFlags::CREATE | ReadFlags::MOVED_TO;
        let went = ReadFlags::DELETE | ReadFlags::MOVED_FROM;
        match name {
            Some(name) if is_folder && what.intersects(came) => {
                Some(Notice::FolderCame { watch, name })
            }
            Some(name) if is_folder && what.intersects(went) => {
                Some(Notice::FolderWent { watch, name })
            }
            Some(name) => Some(Notice::Changed { watch, name }),
            None => {
                let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
                what.intersects(gone).then_some(Notice::Gone { watch })
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod inotify {
    use super::{Notice, Notifier, Path, WatchId, io};

    impl Notifier {
        pub fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn watch(&self, _folder: &Path) -> io::Result<WatchId> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn forget(&self, _watch: WatchId) {}

        pub fn drain(&self) -> io::Result<Vec<Notice>> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_happens_in_a_folder_is_told_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let notifier = Notifier::new().unwrap();
        let watch = notifier.watch(folder.path()).unwrap();
        assert_eq!(notifier.drain().unwrap(), []);
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("a"), "one").unwrap();
        fs::rename(folder.path().join("src"), folder.path().join("lib")).unwrap();
        let told = notifier.drain().unwrap();
        let came = |name: &str| Notice::FolderCame { watch, name: name.into() };
        let went = |name: &str| Notice::FolderWent { watch, name: name.into() };
        assert_eq!(told.first(), Some(&came("src")));
        assert!(told.contains(&Notice::Changed { watch, name: b"a".to_vec() }));
        assert_eq!(told[told.len() - 2..], [went("src"), came("lib")]);
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(notifier.drain().unwrap().contains(&Notice::Gone { watch }));
    }

    #[test]
    fn a_folder_that_is_not_there_cannot_be_watched() {
        let notifier = Notifier::new().unwrap();
        let error = notifier.watch(Path::new("/no/such/folder")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
