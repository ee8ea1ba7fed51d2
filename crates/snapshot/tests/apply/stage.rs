//! A workspace, a store with some texts, and plans between them

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use bivouac_core::id::{ObjectId, OperationId, PackId};
use bivouac_core::operation::Outcome;
use bivouac_core::path::RelPath;
use bivouac_core::progress::{Progress, Silent};
use bivouac_snapshot::Error;
use bivouac_snapshot::apply::apply;
use bivouac_snapshot::beneath::Root;
use bivouac_snapshot::block::ObjectKind;
use bivouac_snapshot::displaced::clean_up;
use bivouac_snapshot::objects::{Catalog, Objects, Packs, Place};
use bivouac_snapshot::pack::{Compression, PackWriter};
use bivouac_snapshot::plan::{Plan, Step};
use bivouac_snapshot::stage::Staging;
use bivouac_snapshot::tree::{Content, Entry, FileEntry};
use tempfile::TempDir;

/// A workspace and a store that holds some texts.
pub(crate) struct Stage {
    _folder: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) packs: Packs,
    pub(crate) catalog: Places,
}

pub(crate) struct Places(HashMap<ObjectId, Place>);

impl Catalog for Places {
    fn locate(&self, id: &ObjectId) -> bivouac_snapshot::Result<Option<Place>> {
        Ok(self.0.get(id).copied())
    }
}

const TEXTS: [&str; 3] = ["old", "new", "other"];
pub(crate) const OPERATION: OperationId = OperationId::from_bytes([7; 16]);

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (work, store) = (folder.path().join("work"), folder.path().join("packs"));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&store).unwrap();
        let mut writer =
            PackWriter::new(&store, PackId::from_bytes([1; 16]), Compression::quick(3));
        for text in TEXTS.map(str::to_owned).into_iter().chain(["a", "b"].map(database)) {
            writer.put(ObjectKind::Blob, ObjectId::of(text.as_bytes()), text.as_bytes()).unwrap();
        }
        let pack = writer.finish().unwrap().unwrap();
        let places = pack.objects.iter().map(|(object, place)| (object.id, *place)).collect();
        Self { work, packs: Packs::new(&store), catalog: Places(places), _folder: folder }
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.work.join(path);
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        if folder == self.staging_folder() {
            set_mode(folder, 0o700);
        }
        fs::write(&path, text).unwrap();
        set_mode(&path, 0o644);
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work.join(path)).unwrap_or_else(|_| "-".to_owned())
    }

    pub(crate) fn staging(&self, name: &str) -> String {
        format!(".biv-staging-{OPERATION}/{name}")
    }

    pub(crate) fn staging_folder(&self) -> PathBuf {
        self.work.join(format!(".biv-staging-{OPERATION}"))
    }

    /// Applies a plan, with an interference after everything was staged and before the first swap.
    pub(crate) fn apply_disturbed(
        &self,
        plan: &Plan,
        disturb: &(dyn Fn() + Sync),
    ) -> Result<Outcome, Error> {
        let root = Root::open(&self.work).unwrap();
        let objects = Objects::new(&self.packs, &self.catalog);
        let staging = Staging::open(&root, OPERATION).unwrap();
        let outcome = apply(&root, &staging, &objects, plan, &BeforeSwap(disturb))?;
        clean_up(&root, &staging, plan)?;
        Ok(outcome)
    }

    pub(crate) fn apply(&self, plan: &Plan) -> Outcome {
        self.apply_while(plan, &Silent)
    }

    pub(crate) fn apply_while(&self, plan: &Plan, progress: &dyn Progress) -> Outcome {
        let root = Root::open(&self.work).unwrap();
        let objects = Objects::new(&self.packs, &self.catalog);
        let staging = Staging::open(&root, OPERATION).unwrap();
        let outcome = apply(&root, &staging, &objects, plan, progress).unwrap();
        clean_up(&root, &staging, plan).unwrap();
        assert!(!self.staging_folder().exists());
        outcome
    }
}

struct BeforeSwap<'d>(&'d (dyn Fn() + Sync));

impl Progress for BeforeSwap<'_> {
    fn begin(&self, what: &str, _total: u64) {
        if what == "Restoring" {
            (self.0)();
        }
    }
    fn add(&self, _n: u64) {}
    fn end(&self) {}
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn file(text: &str) -> Option<Entry> {
    let content = Content::Whole(ObjectId::of(text.as_bytes()));
    Some(Entry::File(FileEntry { mode: 0o644, size: text.len() as u64, content }))
}

/// One page of a database.
pub(crate) fn database(filler: &str) -> String {
    format!("SQLite format 3\0{}", filler.repeat(496))
}

pub(crate) fn folder(mode: u16) -> Option<Entry> {
    Some(Entry::Folder { mode, tree: ObjectId::of(b"") })
}

pub(crate) fn plan(steps: &[(&str, Option<Entry>, Option<Entry>)]) -> Plan {
    let step = |(path, before, after): &(&str, Option<Entry>, Option<Entry>)| Step {
        path: path.parse::<RelPath>().unwrap(),
        before: *before,
        after: *after,
    };
    Plan { steps: steps.iter().map(step).collect(), left_alone: Vec::new() }
}

pub(crate) fn replace() -> Plan {
    plan(&[("f", file("old"), file("new"))])
}
