//! How a watcher is spoken to: a line of JSON, then lists of paths, each with NUL behind it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bivouac_snapshot::private;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Nobody has to wait longer than this for the other side.
const PATIENCE: Duration = Duration::from_secs(2);
/// More than this is nothing we would say.
const MAX_BYTES: u64 = 256 << 20;

/// Paths below the workspace.
pub(crate) type Paths = Vec<Box<[u8]>>;

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    message: T,
    /// How many bytes each list has.
    lists: Vec<u64>,
}

pub(crate) fn send<T: Serialize>(
    mut stream: &UnixStream,
    message: T,
    lists: &[&Paths],
) -> io::Result<()> {
    let bytes_of =
        |list: &&Paths| list.iter().flat_map(|path| [path.as_ref(), b"\0"].concat()).collect();
    let lists: Vec<Vec<u8>> = lists.iter().map(bytes_of).collect();
    let envelope =
        Envelope { message, lists: lists.iter().map(|list| list.len() as u64).collect() };
    let mut bytes = serde_json::to_vec(&envelope)?;
    bytes.push(b'\n');
    bytes.extend(lists.concat());
    stream.write_all(&bytes)
}

pub(crate) fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<(T, Vec<Paths>)> {
    let mut reader = BufReader::new(stream.take(MAX_BYTES));
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    let envelope: Envelope<T> = serde_json::from_slice(&line)?;
    let mut lists = Vec::new();
    for length in envelope.lists {
        let mut list = Vec::new();
        reader.by_ref().take(length).read_to_end(&mut list)?;
        if list.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        list.pop();
        let paths = list.split(|byte| *byte == 0).map(Box::from);
        lists.push(if length == 0 { Paths::new() } else { paths.collect() });
    }
    Ok((envelope.message, lists))
}

/// Where a socket is, in few enough letters for the system: by a descriptor of its folder.
struct Short {
    _folder: OwnedFd,
    path: PathBuf,
}

impl Short {
    fn new(socket: &Path) -> io::Result<Self> {
        let (folder, name) = private::folder_of(socket)?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { _folder: folder, path })
    }
}

pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(Short::new(socket)?.path)?;
    be_patient(&stream)?;
    Ok(stream)
}

/// Takes the place of a socket that nobody answers at any more. Whoever asks holds the watcher's lock.
pub(crate) fn listen(socket: &Path) -> io::Result<UnixListener> {
    match private::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(Short::new(socket)?.path)?;
    private::make_private(socket)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

pub(crate) fn be_patient(stream: &UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}
