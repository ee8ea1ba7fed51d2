//! Opening a bundle: a folder, or a file that is unpacked into a folder of ours first. Every file is compared
//! with what the manifest says before anything in it is believed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bivouac_core::environment::Environment;
use bivouac_core::terminal::Terminal;
use bivouac_core::text::printable_bytes;
use bivouac_core::work::Work;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::private;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::inflate::{MAX_BYTES, What, each_entry};
use super::{
    BadBundle, CONVERSATION, Conversation, ENVIRONMENT, FORMAT, MANIFEST, Manifest, PARTS,
    PROGRESS, Seal, TERMINAL, VERSION, WORKSPACE,
};
use crate::home::Home;
use crate::{Error, Result};

/// What documents may have at most; a conversation has more to say.
const MAX_DOCUMENT: u64 = 64 << 20;
const MAX_CONVERSATION: u64 = 1 << 30;

/// A bundle whose files are what its manifest says.
pub(super) struct Opened {
    root: Root,
    pub(super) manifest: Manifest,
    pub(super) conversation: Option<Conversation>,
    pub(super) work: Work,
    /// `None` where nothing was known.
    pub(super) environment: Option<Environment>,
    pub(super) terminal: Option<Terminal>,
    pub(super) scratch: Scratch,
}

/// A folder of ours that goes with us.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn create(home: &Home, folder: PathBuf) -> Result<Self> {
        home.make_folder(&folder)?;
        Ok(Self(folder))
    }

    pub(super) fn file(&self, name: &str) -> Result<(PathBuf, File)> {
        let path = self.0.join(name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.map_err(Error::io(&path)).map(|file| (path, file))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _swept_later = private::remove_folder(&self.0);
    }
}

/// What has to be known before anything else is.
#[derive(Deserialize)]
struct Start {
    format: String,
    version: u64,
}

impl Opened {
    pub(super) fn open(path: &Path, scratch: Scratch) -> Result<Self> {
        let meta = fs::metadata(path).map_err(Error::io(path))?;
        let root = match meta.is_dir() {
            true => Root::open(path).map_err(Error::io(path))?,
            false => {
                unpack(path, &scratch)?;
                Root::open(&scratch.0).map_err(Error::io(&scratch.0))?
            }
        };
        let manifest = read_manifest(&root, path)?;
        for name in PARTS {
            let missing = || BadBundle::Missing { file: name.to_owned() };
            let seal = manifest.files.get(name).ok_or_else(missing)?;
            check(&root, name, seal)?;
        }
        let conversation = document(&root, CONVERSATION)?;
        let work = document(&root, PROGRESS)?;
        let environment: Environment = document(&root, ENVIRONMENT)?;
        let environment = Some(environment).filter(|it| !it.is_empty());
        let text = String::from_utf8_lossy(&read_document(&root, TERMINAL)?).into_owned();
        let terminal =
            Terminal::read(&text).map_err(|error| BadBundle::malformed(TERMINAL, &error))?;
        Ok(Self { root, manifest, conversation, work, environment, terminal, scratch })
    }

    /// The archive of the workspace.
    pub(super) fn workspace(&self) -> Result<File> {
        open_file(&self.root, WORKSPACE)
    }
}

fn read_manifest(root: &Root, path: &Path) -> Result<Manifest> {
    let not_one = |what: String| BadBundle::NotOne { path: path.to_owned(), what };
    let bytes = match read_document(root, MANIFEST) {
        Err(Error::Bundle(BadBundle::Missing { .. })) => {
            return Err(not_one(format!("it has no `{MANIFEST}`")).into());
        }
        other => other?,
    };
    let start: Start =
        serde_json::from_slice(&bytes).map_err(|error| not_one(error.to_string()))?;
    if start.format != FORMAT {
        return Err(not_one("its manifest is something else".to_owned()).into());
    }
    if start.version > u64::from(VERSION) {
        return Err(BadBundle::Newer { found: start.version, known: VERSION }.into());
    }
    Ok(serde_json::from_slice(&bytes).map_err(|error| BadBundle::malformed(MANIFEST, &error))?)
}

fn document<T: DeserializeOwned>(root: &Root, name: &str) -> Result<T> {
    let bytes = read_document(root, name)?;
    Ok(serde_json::from_slice(&bytes).map_err(|error| BadBundle::malformed(name, &error))?)
}

fn read_document(root: &Root, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_file(root, name)?.take(max_size(name) + 1);
    { file }.read_to_end(&mut bytes).map_err(Error::io(name))?;
    check_size(name, bytes.len() as u64)?;
    Ok(bytes)
}

/// A regular file of the bundle's; links are not followed.
fn open_file(root: &Root, name: &str) -> Result<File> {
    let file = root.open_file(name.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => BadBundle::Missing { file: name.to_owned() },
        _ => BadBundle::malformed(name, &error),
    })?;
    match file.metadata().is_ok_and(|meta| meta.is_file()) {
        true => Ok(file),
        false => Err(BadBundle::malformed(name, &"it is no regular file").into()),
    }
}

fn check(root: &Root, name: &str, seal: &Seal) -> Result<()> {
    let file = open_file(root, name)?;
    check_size(name, seal.size_bytes)?;
    let mut hasher = blake3::Hasher::new();
    let mut limited = file.take(seal.size_bytes.saturating_add(1));
    let size_bytes = io::copy(&mut limited, &mut hasher).map_err(Error::io(name))?;
    let found = Seal { blake3: hasher.finalize().to_hex().to_string(), size_bytes };
    match found == *seal {
        true => Ok(()),
        false => Err(BadBundle::Mismatch { file: name.to_owned() }.into()),
    }
}

fn max_size(name: &str) -> u64 {
    match name {
        WORKSPACE => MAX_BYTES,
        CONVERSATION => MAX_CONVERSATION,
        _ => MAX_DOCUMENT,
    }
}

fn check_size(name: &str, size: u64) -> Result<(), BadBundle> {
    match size <= max_size(name) {
        true => Ok(()),
        false => {
            let what = "it is larger than any we write";
            Err(BadBundle::TooLarge { file: name.to_owned(), what })
        }
    }
}

/// Takes the files out of a bundle that is one file. It may hold nothing else.
fn unpack(path: &Path, scratch: &Scratch) -> Result<()> {
    let label = printable_bytes(path.file_name().unwrap_or_default().as_encoded_bytes());
    let packed = File::open(path).map_err(Error::io(path))?;
    let unpacked = each_entry(&label, packed, &mut |found| {
        let refused = |what| BadBundle::Refused { path: printable_bytes(&found.path), what };
        let known = [MANIFEST].into_iter().chain(PARTS);
        let Some(name) = { known }.find(|name| name.as_bytes() == found.path) else {
            return Err(refused("which no bundle has").into());
        };
        let What::File { size, bytes } = found.what else {
            return Err(refused("which is no file").into());
        };
        check_size(name, size)?;
        if scratch.0.join(name).symlink_metadata().is_ok() {
            return Err(refused("which is there twice").into());
        }
        let (to, mut file) = scratch.file(name)?;
        match io::copy(bytes, &mut file) {
            Ok(length) if length == size => Ok(()),
            Ok(_) => Err(BadBundle::malformed(&label, &"it is cut off").into()),
            Err(error) if error.raw_os_error().is_some() => Err(Error::io(to)(error)),
            Err(error) => Err(BadBundle::malformed(&label, &error).into()),
        }
    });
    match unpacked {
        // Whatever it is, it does not begin like a bundle.
        Err(Error::Bundle(BadBundle::Malformed { what, .. }))
            if !scratch.0.join(MANIFEST).exists() =>
        {
            Err(BadBundle::NotOne { path: path.to_owned(), what }.into())
        }
        other => other,
    }
}
