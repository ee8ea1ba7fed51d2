//! A repository as git is shown it when it is only asked something.
//!
//! git is never pointed at the repository's own folder. For each question it gets a small folder of ours with a
//! configuration that we wrote, HEAD and upstream as we resolved them, and an empty object folder that has the
//! repository's objects as an alternate. Only the index and the objects are the repository's. So git knows no
//! filter, no hook, no remote, no file system monitor and no credential helper, whatever any configuration says,
//! and there is no path by which it could write to `.git`: not by fetching missing objects, not by refreshing
//! times. See `docs/decisions/0028-git-is-shown-a-view.md`.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::config::Config;
use super::refs::Head;
use super::upstream::Tracking;
use super::{MOST_INDEX_BYTES, PATIENCE, Repository, ignore, index};
use crate::process::Program;
use crate::{Error, Result, bounded};

/// A folder that git takes for the repository. It goes when this is dropped.
pub(super) struct View {
    folder: PathBuf,
    top: PathBuf,
    objects: PathBuf,
    index: PathBuf,
    /// When no answer is waited for any longer.
    until: Instant,
    /// The upstream of the branch, by the name that people know.
    pub(super) upstream: Option<String>,
    /// The filters that a configuration defines. They are not run.
    pub(super) filters: Vec<String>,
    /// Some tracked file may have attributes, such as a filter.
    pub(super) has_attributes: bool,
    /// Objects may be missing on purpose, to be fetched when they are needed.
    pub(super) is_partial: bool,
}

/// What git calls the branch and its upstream in there.
const BRANCH: &str = "refs/heads/biv";
const UPSTREAM: &str = "refs/remotes/biv/upstream";

/// A sparse index stays one.
const SPARSE_INDEX: &str =
    "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n[index]\n\tsparse = true\n";

/// Settings about how the files of a work tree are compared. None of them names a program or a file.
const HARMLESS: [&str; 10] = [
    "filemode",
    "symlinks",
    "ignorecase",
    "precomposeunicode",
    "autocrlf",
    "eol",
    "trustctime",
    "checkstat",
    "sparsecheckout",
    "sparsecheckoutcone",
];

/// Extensions that change nothing about what is read, or that are taken care of here.
const EXTENSIONS: [&str; 9] = [
    "noop",
    "noop-v1",
    "partialclone",
    "preciousobjects",
    "worktreeconfig",
    "objectformat",
    "compatobjectformat",
    "refstorage",
    "relativeworktrees",
];

const MOST_PATTERN_BYTES: u64 = 16 << 20;
/// A view this much older than a new one was left by a process that was killed.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

impl View {
    /// The history: HEAD, its upstream, and the objects.
    pub(super) fn open(repository: &Repository) -> Result<Self> {
        Self::make(repository)?.with_history(repository, "")
    }

    /// The history, and what a work tree is compared with.
    pub(super) fn for_status(repository: &Repository) -> Result<Self> {
        let mut view = Self::make(repository)?;
        let survey = index::survey(repository)?;
        if survey.is_sparse {
            // git would spell out the whole index, and set the times of every tree it comes across.
            if let Some(folder) = index::first_outside(repository)? {
                let why = "it is outside of the sparse checkout";
                return Err(Error::io(folder)(io::Error::other(why)));
            }
            let patterns = repository.git_dir.join("info/sparse-checkout");
            view.copy_if_there(&patterns, "info/sparse-checkout")?;
        }
        view = view.with_history(repository, if survey.is_sparse { SPARSE_INDEX } else { "" })?;
        view.copy_patterns(repository)?;
        view.has_attributes = survey.has_attributes || view.folder.join("info/attributes").exists();
        view.index = view.find_index(repository)?;
        Ok(view)
    }

    fn with_history(mut self, repository: &Repository, more_config: &str) -> Result<Self> {
        let config = Config::read(Some(repository))?;
        check_extensions(&config)?;
        let head = repository.head();
        if let Some(problem) = head.problem {
            return Err(Error::io(repository.git_dir.join("HEAD"))(io::Error::other(problem)));
        }
        let tracking = head.branch.as_ref().and_then(|branch| Tracking::of(branch, &config));
        self.filters = filters(&config);
        self.is_partial = is_partial(&config);
        self.write("config", config_text(&config, tracking.as_ref()) + more_config)?;
        self.write_refs(repository, &head, tracking.as_ref())?;
        self.upstream = tracking.map(|it| it.name);
        self.copy_if_there(&repository.common_dir.join("shallow"), "shallow")?;
        Ok(self)
    }

    /// The refs of a repository that keeps them in tables. git alone can read those.
    pub(super) fn of_tables(repository: &Repository, git_dir: &Path) -> Result<Self> {
        let view = Self::make(repository)?;
        let mut config = config_text(&Config::of_repository(repository)?, None);
        config.push_str("[extensions]\n\trefstorage = reftable\n");
        view.write("config", config)?;
        view.write("HEAD", "ref: refs/heads/.invalid\n")?;
        let link = view.folder.join("reftable");
        std::os::unix::fs::symlink(git_dir.join("reftable"), &link).map_err(Error::io(link))?;
        Ok(view)
    }

    /// git, asked from a folder of the work tree.
    pub(super) fn git(&self, folder: &Path) -> Program {
        Program::git(folder)
            .only_reads()
            .within(self.until.saturating_duration_since(Instant::now()))
            .env("GIT_DIR", &self.folder)
            .env("GIT_WORK_TREE", &self.top)
            .env("GIT_INDEX_FILE", &self.index)
            .env("GIT_OBJECT_DIRECTORY", self.folder.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.objects))
            // The user's configuration names filters, too: Git LFS is one.
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("HOME", &self.folder)
            .env("XDG_CONFIG_HOME", &self.folder)
    }

    fn make(repository: &Repository) -> Result<Self> {
        if repository.is_out_of_time() {
            return Err(Error::TooSlow { program: "git".to_owned(), within: PATIENCE });
        }
        let objects = repository.common_dir.join("objects");
        check_regular(&objects.join("info/alternates"))?;
        let folder = make_folder(repository)?;
        let view = Self {
            index: folder.join("index"),
            folder,
            top: repository.top.clone(),
            objects,
            until: repository.until,
            upstream: None,
            filters: Vec::new(),
            has_attributes: false,
            is_partial: false,
        };
        for name in ["objects", "refs", "info"] {
            new_folder(&view.folder.join(name))?;
        }
        Ok(view)
    }

    fn write_refs(
        &self,
        repository: &Repository,
        head: &Head,
        tracking: Option<&Tracking>,
    ) -> Result<()> {
        let upstream = tracking.and_then(|it| repository.resolve(&it.reference).ok().flatten());
        let refs = [
            (BRANCH, head.commit.as_ref().filter(|_| head.branch.is_some())),
            (UPSTREAM, upstream.as_ref()),
        ];
        let lines =
            refs.iter().filter_map(|(name, commit)| Some(format!("{} {name}\n", (*commit)?)));
        self.write("packed-refs", lines.collect::<String>())?;
        match (&head.branch, &head.commit) {
            (None, Some(commit)) => self.write("HEAD", format!("{commit}\n")),
            _ => self.write("HEAD", format!("ref: {BRANCH}\n")),
        }
    }

    /// The user's patterns and the repository's, in one file: the later ones win, as with git.
    fn copy_patterns(&self, repository: &Repository) -> Result<()> {
        let mut patterns = ignore::global_ignore(&repository.top, Some(repository));
        patterns.push(b'\n');
        patterns.extend(repository.read_below("info/exclude", MOST_PATTERN_BYTES)?);
        self.write("info/exclude", patterns)?;
        self.copy_if_there(&repository.common_dir.join("info/attributes"), "info/attributes")
    }

    /// The index itself, except where it is split: git sets the times of the shared part when it reads it, so
    /// then both are copied.
    fn find_index(&self, repository: &Repository) -> Result<PathBuf> {
        let own = repository.git_dir.join("index");
        check_regular(&own)?;
        let shared = index::shared_files(repository)?;
        if shared.is_empty() {
            return Ok(own);
        }
        for path in shared.iter().chain([&own]) {
            let bytes = bounded::read(path, MOST_INDEX_BYTES).map_err(Error::io(path))?;
            let name = path.file_name().unwrap_or_default();
            self.write(name, bytes)?;
            // A file as young as the index is compared by its contents, so the copy must be as old as the index.
            let copy = fs::File::options().append(true).open(self.folder.join(name));
            let time = fs::metadata(path).and_then(|meta| meta.modified());
            let set = copy.and_then(|copy| copy.set_modified(time?));
            set.map_err(Error::io(path))?;
        }
        Ok(self.folder.join("index"))
    }

    fn copy_if_there(&self, from: &Path, name: &str) -> Result<()> {
        match bounded::read(from, MOST_PATTERN_BYTES) {
            Err(error) if bounded::is_absent(&error) => Ok(()),
            bytes => self.write(name, bytes.map_err(Error::io(from))?),
        }
    }

    fn write(&self, name: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Result<()> {
        let path = self.folder.join(name);
        let file = fs::File::options().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(contents.as_ref())).map_err(Error::io(path))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _next_view_does = fs::remove_dir_all(&self.folder);
    }
}

fn config_text(config: &Config, tracking: Option<&Tracking>) -> String {
    let object_format = config.text("extensions.objectformat").filter(|it| is_plain(it));
    let mut text =
        "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\texcludesFile = /dev/null\n\
        \tuntrackedCache = false\n"
            .to_owned();
    for name in HARMLESS {
        if let Some(value) = config.text(&format!("core.{name}")).filter(|it| is_plain(it)) {
            text.extend(["\t", name, " = ", value, "\n"]);
        }
    }
    if let Some(format) = object_format {
        text.extend(["[extensions]\n\tobjectformat = ", format, "\n"]);
    }
    if tracking.is_some() {
        text.extend(["[branch \"biv\"]\n\tremote = .\n\tmerge = ", UPSTREAM, "\n"]);
    }
    text
}

/// A word or a number: nothing that has to be quoted.
fn is_plain(value: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=20).contains(&value.len()) && value.bytes().all(is_letter)
}

/// git refuses a repository with an extension that it does not know. So do we: its files may mean something else.
fn check_extensions(config: &Config) -> Result<()> {
    let mut extensions = config.keys().filter_map(|key| key.strip_prefix("extensions."));
    match extensions.all(|it| EXTENSIONS.contains(&it)) {
        true => Ok(()),
        false => Err(Error::Unexpected {
            program: "git".to_owned(),
            what: "a repository with an unknown extension",
        }),
    }
}

fn filters(config: &Config) -> Vec<String> {
    let names = config.keys().filter_map(|key| {
        let (name, what) = key.strip_prefix("filter.")?.rsplit_once('.')?;
        matches!(what, "clean" | "process").then(|| name.to_owned())
    });
    names.collect()
}

fn is_partial(config: &Config) -> bool {
    config.last("extensions.partialclone").is_some()
        || config.keys().any(|key| key.starts_with("remote.") && key.ends_with(".promisor"))
}

/// Entries of that variable are separated by colons; one that begins with a quote is unquoted.
fn quoted(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b':' | b'"' | b'\n')) {
        return path.into();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// git would wait for ever at a FIFO.
fn check_regular(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => {
            Err(Error::io(path)(io::Error::other("it is not a regular file")))
        }
        _ => Ok(()),
    }
}

/// A new folder that nobody else can open: in the store, or where there is none yet, among temporary files. It
/// must not be in the work tree, where git would find it.
fn make_folder(repository: &Repository) -> Result<PathBuf> {
    let is_outside = |folder: &Path| !folder.starts_with(&repository.top);
    let parent = repository.views.as_deref().filter(|views| is_outside(views));
    if let Some(parent) = parent.filter(|views| is_folder(views) || new_folder(views).is_ok()) {
        let folder = parent.join(random_name());
        new_folder(&folder)?;
        remove_left_behind(parent, &folder);
        return Ok(folder);
    }
    let places = [std::env::temp_dir(), "/var/tmp".into(), "/tmp".into(), "/dev/shm".into()];
    let place = places.into_iter().find(|place| place.is_absolute() && is_outside(place));
    let folder = place.unwrap_or_else(|| "/tmp".into()).join(random_name());
    new_folder(&folder)?;
    Ok(folder)
}

/// Is it a folder, and neither it nor the folder it is in a link? What lies behind one is not ours to clean up.
fn is_folder(path: &Path) -> bool {
    let is_real = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    is_real(path) && path.parent().is_some_and(is_real)
}

fn random_name() -> String {
    format!("biv-git-{:016x}", RandomState::new().build_hasher().finish())
}

fn new_folder(path: &Path) -> Result<()> {
    DirBuilder::new().mode(0o700).create(path).map_err(Error::io(path))
}

/// Is this a name that `random_name` makes?
fn is_our_name(name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(b"biv-git-");
    rest.is_some_and(|rest| rest.len() == 16 && rest.iter().all(u8::is_ascii_hexdigit))
}

/// Removes views of processes that were killed before they could.
fn remove_left_behind(parent: &Path, new: &Path) {
    let time_of = |path: &Path| fs::symlink_metadata(path).and_then(|meta| meta.modified()).ok();
    let now = time_of(new);
    for path in fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_ours = path.file_name().is_some_and(is_our_name);
        let age = now.zip(time_of(&path)).and_then(|(now, then)| now.duration_since(then).ok());
        if is_ours && age.is_some_and(|age| age > LEFT_BEHIND) {
            let _next_time = fs::remove_dir_all(&path);
        }
    }
}
