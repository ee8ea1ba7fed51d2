//! A bundle, in pieces: its manifest, four documents, then the files of its workspace, each with a line that says
//! what it is (`f 644 path`, `d 755 path`, `l target path`, or any other letter of an archive). Seals are put in,
//! as no fuzzer finds one. What is refused leaves no trace, what is taken stays in its folder and comes back from
//! an export as it was.

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use bivouac_core::progress::Silent;
use bivouac_core::size::Bytes;
use bivouac_engine::Engine;
use bivouac_engine::bundle::{Care, ImportReport, Target};
use bivouac_engine::home::Wishes;
use bivouac_engine::open::Need;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

const DOCUMENTS: [&str; 5] =
    ["manifest.json", "conversation.json", "env.json", "progress.json", "tmux-layout.txt"];
const WORKSPACE: &str = "workspace.tar.gz";

/// A store grows with every bundle; after so many a new one is begun.
const MANY: u32 = 300;

struct World {
    engine: Engine,
    folder: tempfile::TempDir,
    n_tried: u32,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

pub fn try_one(bytes: &[u8]) {
    WORLD.with_borrow_mut(|kept| {
        let mut world = kept.take().filter(|it| it.n_tried < MANY).unwrap_or_else(World::new);
        world.n_tried += 1;
        let place = world.folder.path().join("try");
        fs::create_dir(&place).expect("a new folder takes one");
        world.check(bytes, &place);
        fs::remove_dir_all(&place).expect("it is ours");
        *kept = Some(world);
    });
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).expect("a new folder takes one");
        let store = Some(folder.path().join("store"));
        let wishes = Wishes { folder: Some(workspace.clone()), workspace: Some(workspace), store };
        let mut engine = Engine::open(&wishes, Need::Write, Box::new(Silent))
            .expect("there is room for a store");
        engine.config.min_free = Bytes(0);
        Self { engine, folder, n_tried: 0 }
    }

    fn check(&mut self, bytes: &[u8], place: &Path) {
        let n_before = self.n_sessions();
        let bundle = written(bytes, &place.join("bundle"));
        let imported = self.engine.import_bundle(&bundle, None);
        let Ok(report) = imported else {
            assert_eq!(self.n_sessions(), n_before, "what is refused is not recorded");
            return;
        };
        assert_eq!(self.n_sessions(), n_before + 1);
        self.check_files(&report, &place.join("files"));
        let again = place.join("again");
        let kept = self.kept(&report);
        self.engine
            .export_bundle(&kept, Care::Raw, Target::Directory(&again))
            .expect("what was taken in goes out");
        let second = self.engine.import_bundle(&again, None).expect("what went out comes in");
        assert_eq!(second.checkpoint.tree, report.checkpoint.tree);
        let talk = |report: &ImportReport| {
            report.checkpoint.conversation.clone().map(|it| (it.agent, it.id, it.usage))
        };
        assert_eq!(talk(&second), talk(&report));
    }

    fn n_sessions(&self) -> usize {
        self.engine.sessions(&Default::default()).expect("a good store").len()
    }

    fn kept(&self, report: &ImportReport) -> bivouac_journal::query::KeptCheckpoint {
        let handle = report.checkpoint.handle.to_string();
        self.engine.checkpoint(&handle, None).expect("it was just recorded")
    }

    /// Lays the files out. Whatever they are called, they are below their folder.
    fn check_files(&mut self, report: &ImportReport, files: &Path) {
        let kept = self.kept(report);
        for (path, _) in self.engine.files_of(&kept).expect("a good store") {
            let strays = |name: &[u8]| {
                matches!(name, b"" | b"." | b"..") || name.eq_ignore_ascii_case(b".git")
            };
            assert!(!path.as_bytes().split(|byte| *byte == b'/').any(strays), "{path}");
        }
        // A name may be too long for this file system; that is told.
        let _told = self.engine.restore_into(&kept, files);
        let beside = files.parent().expect("it is in a folder");
        for entry in fs::read_dir(beside).expect("it is ours") {
            let name = entry.expect("it is ours").file_name();
            assert!(name == "bundle" || name == "files", "{name:?} is new");
        }
        let workspace = fs::read_dir(self.folder.path().join("workspace")).expect("it is ours");
        assert_eq!(workspace.count(), 0, "nothing in the workspace changes");
    }
}

/// Writes the pieces as a bundle whose seals hold.
fn written(bytes: &[u8], folder: &Path) -> PathBuf {
    let pieces = super::pieces(bytes);
    fs::create_dir(folder).expect("a new folder takes one");
    let files = archive(pieces.get(DOCUMENTS.len()..).unwrap_or_default());
    let mut seals = json!({ WORKSPACE: seal(&files) });
    fs::write(folder.join(WORKSPACE), files).expect("a new folder takes a file");
    for (name, piece) in DOCUMENTS.into_iter().zip(&pieces).skip(1) {
        seals[name] = seal(piece);
        fs::write(folder.join(name), piece).expect("a new folder takes a file");
    }
    let manifest = match serde_json::from_slice::<Value>(pieces[0]) {
        Ok(Value::Object(mut manifest)) => {
            manifest.insert("files".to_owned(), seals);
            Value::Object(manifest).to_string().into_bytes()
        }
        _ => pieces[0].to_vec(),
    };
    fs::write(folder.join(DOCUMENTS[0]), manifest).expect("a new folder takes a file");
    folder.to_owned()
}

fn seal(bytes: &[u8]) -> Value {
    json!({ "blake3": blake3::hash(bytes).to_hex().as_str(), "size_bytes": bytes.len() })
}

/// The files of a workspace as an archive. Names go in as they are, also those that should not be.
fn archive(files: &[&[u8]]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for file in files {
        let (about, content) = super::first_line(file);
        let mut words = about.splitn(3, |byte| *byte == b' ');
        let (kind, middle, path) = (words.next(), words.next(), words.next().unwrap_or_default());
        let (kind, middle) = (kind.unwrap_or_default(), middle.unwrap_or_default());
        let mode = std::str::from_utf8(middle).ok().and_then(|it| u32::from_str_radix(it, 8).ok());
        let kind = match kind {
            b"f" => EntryType::Regular,
            b"d" => EntryType::Directory,
            b"l" => EntryType::Symlink,
            other => EntryType::new(other.first().copied().unwrap_or(b'0')),
        };
        let content = if kind == EntryType::Symlink { b"" } else { content };
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode.unwrap_or(0o644));
        header.set_size(content.len() as u64);
        put(&mut header.as_old_mut().name, path);
        if kind == EntryType::Symlink {
            put(&mut header.as_old_mut().linkname, middle);
        }
        header.set_cksum();
        builder.append(&header, content).expect("memory takes it");
    }
    let mut packed = builder.into_inner().expect("memory takes it");
    packed.flush().expect("memory takes it");
    packed.finish().expect("memory takes it")
}

/// As much of a name as there is room for.
fn put(field: &mut [u8; 100], name: &[u8]) {
    let length = name.len().min(field.len());
    field[..length].copy_from_slice(&name[..length]);
}
