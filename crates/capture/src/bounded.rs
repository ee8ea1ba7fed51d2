//! Reading files that somebody else wrote: regular files only, up to a size, and never waiting.
//!
//! A FIFO, a device or a sparse file of a terabyte can lie wherever a repository or a user's folder is expected
//! to hold a small text. Opening a FIFO blocks, opening some devices has effects, and reading without a limit
//! fills the memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file, or one that a symbolic link leads to.
pub fn open(path: &Path) -> io::Result<File> {
    // The type is looked at before the file is opened, because opening a device can have effects, and again
    // afterwards, because the file can have been replaced in between. `NONBLOCK` is for that case as well.
    check_regular(&std::fs::metadata(path)?)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// The contents of a regular file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut contents = Vec::new();
    if file.metadata()?.len() <= most {
        file.take(most + 1).read_to_end(&mut contents)?;
        if contents.len() as u64 <= most {
            return Ok(contents);
        }
    }
    Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")))
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path, most)?).map_err(not_text)
}

/// Is there no such file, as opposed to one that cannot be read?
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn check_regular(meta: &std::fs::Metadata) -> io::Result<()> {
    match meta.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_moderate_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("plain"), "12345").unwrap();
        std::os::unix::fs::symlink("plain", path("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();
        File::create(path("sparse")).unwrap().set_len(1 << 40).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), 0o600.into()).unwrap();
        let check = |name: &str, expected: &str| {
            let found = read_text(&path(name), 5).unwrap_or_else(|error| error.to_string());
            assert_eq!(found, expected, "{name}");
        };
        check("plain", "12345");
        check("link", "12345");
        check("fifo", "it is not a regular file");
        check("device", "it is not a regular file");
        check("sparse", "it is larger than 5 bytes");
        assert!(is_absent(&read(&path("absent"), 5).unwrap_err()));
        assert!(is_absent(&read(&path("plain/absent"), 5).unwrap_err()));
    }
}
