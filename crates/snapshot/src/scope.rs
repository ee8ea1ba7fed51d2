//! What belongs to a snapshot: the settings, the ignore rules in force at a place, and the verdict
//! on a name.

use std::sync::OnceLock;

use bivouac_core::checkpoint::Gap;
use bivouac_core::id::OperationId;
use bivouac_core::path::RelPath;

use crate::beneath::{Kind, Root};
use crate::path_set::PathSet;
use crate::rules::{Rules, Verdict};
use crate::stat_cache::Fingerprint;

/// What a person decided about all snapshots of a workspace.
#[derive(Debug, Default)]
pub struct Settings {
    /// Ignored files that are precious all the same.
    pub include: Vec<String>,
    /// Files to leave out although no rule ignores them.
    pub exclude: Vec<String>,
    pub max_file_size: u64,
    /// Our own store and the agents' state folders, where they lie inside the workspace.
    pub own_state: Vec<RelPath>,
    /// The user's global ignore file.
    pub global_ignore: Vec<u8>,
}

/// What a repository says about the files below it. Read by `capture`.
pub struct Repository {
    /// Changes whenever the index does.
    pub index: Fingerprint,
    /// The contents of `info/exclude`.
    pub exclude: Vec<u8>,
    /// Where the repository's top lies above the workspace: the way down from there, and the
    /// ignore files met on it (outermost first) with the folders they stand in.
    pub above: Option<Above>,
    /// Lists what the index tracks, relative to the repository's top.
    pub load_tracked: Box<dyn Fn() -> Result<PathSet, String> + Send + Sync>,
}

pub struct Above {
    /// The workspace's path within the repository.
    pub prefix: RelPath,
    /// Each ignore file's folder (empty for the top) and contents.
    pub ignore_files: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Finds the repository whose top (or, at the workspace's root, whose inside) a folder is.
pub type FindRepository<'a> = dyn Fn(&[u8]) -> Option<Repository> + Sync + 'a;

/// The settings, ready to be asked.
pub(crate) struct Scope<'a> {
    pub(crate) root: &'a Root,
    include: Rules,
    exclude: Rules,
    max_file_size: u64,
    own_state: &'a [RelPath],
    global_ignore: &'a [u8],
    find_repository: &'a FindRepository<'a>,
    /// Why it could not be learned what git tracks.
    untold: OnceLock<String>,
    /// Paths to capture whatever the rules say.
    pub(crate) forced: &'a PathSet,
    fingerprint: Fingerprint,
}

/// Staging folders of restores start like this; they are ours and never captured.
pub(crate) const STAGING_PREFIX: &[u8] = b".biv-staging-";

/// Is this a staging folder's name? Any other name that only begins so is the project's.
fn is_staging_name(path: &[u8]) -> bool {
    let id = path.strip_prefix(STAGING_PREFIX).and_then(|id| std::str::from_utf8(id).ok());
    // Bundles are prepared in a folder of the same kind.
    let id = id.map(|id| id.strip_prefix("export-").unwrap_or(id));
    id.is_some_and(|id| id.parse::<OperationId>().is_ok_and(|it| it.to_string() == id))
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        root: &'a Root,
        settings: &'a Settings,
        find_repository: &'a FindRepository<'a>,
        forced: &'a PathSet,
    ) -> Self {
        let seed =
            format!("1 {:?} {:?} {}", settings.include, settings.exclude, settings.max_file_size);
        let own_state = settings.own_state.iter().map(RelPath::as_bytes);
        Self {
            root,
            include: Rules::from_lines(settings.include.iter().map(String::as_str)),
            exclude: Rules::from_lines(settings.exclude.iter().map(String::as_str)),
            max_file_size: settings.max_file_size,
            own_state: &settings.own_state,
            untold: OnceLock::new(),
            global_ignore: &settings.global_ignore,
            find_repository,
            forced,
            fingerprint: fingerprint([seed.as_bytes()].into_iter().chain(own_state)),
        }
    }

    pub(crate) fn is_too_large(&self, size: u64) -> bool {
        size > self.max_file_size
    }

    /// The repository at a folder and the rules it starts with, without its own ignore file.
    pub(crate) fn repository_at(&self, folder: &[u8]) -> Option<RepositoryHere> {
        let repository = (self.find_repository)(folder)?;
        let within = match &repository.above {
            Some(above) => Within::Above([above.prefix.as_bytes(), b"/"].concat()),
            None => Within::Below(if folder.is_empty() { 0 } else { folder.len() + 1 }),
        };
        Some(RepositoryHere { repository, within, tracked: OnceLock::new() })
    }

    /// The rules that hold at the top of a repository, or of a workspace that has none.
    pub(crate) fn base_levels(&self, repository: Option<&RepositoryHere>) -> Vec<Level<'static>> {
        let within = repository.map_or(Within::Below(0), |it| it.within.clone());
        let mut levels = vec![Level::new(self.fingerprint, within.clone(), self.global_ignore)];
        if let Some(here) = repository {
            levels.push(Level::new(self.fingerprint, within, &here.repository.exclude));
            for (folder, text) in here.repository.above.iter().flat_map(|above| &above.ignore_files)
            {
                let prefix = match &here.within {
                    Within::Above(prefix) => prefix,
                    Within::Below(_) => {
                        unreachable!("ignore files above belong to a repository above")
                    }
                };
                let rest = if folder.is_empty() {
                    prefix.clone()
                } else {
                    prefix[folder.len() + 1..].to_vec()
                };
                levels.push(Level::new(self.fingerprint, Within::Above(rest), text));
            }
        }
        levels
    }

    /// Is this name captured, and if it is a folder, how is it looked into?
    pub(crate) fn judge(&self, path: &[u8], kind: Kind, here: &Here<'_>) -> Judgement {
        let is_folder = kind == Kind::Folder;
        let is_staging = is_folder && is_staging_name(path);
        if self.own_state.iter().any(|own| own.as_bytes() == path) || is_staging {
            return Judgement::Leave(Gap::OwnState);
        }
        if kind == Kind::Special {
            return Judgement::Leave(Gap::Special);
        }
        if self.forced.contains(path) {
            return Judgement::Capture { inside: Inside::Rules, depends_on_git: true };
        }
        if self.exclude.judge(path, is_folder) == Some(Verdict::Ignore) {
            let below = is_folder && self.forced.has_below(path);
            return if below { Judgement::chosen() } else { Judgement::Leave(Gap::Excluded) };
        }
        match here.inside {
            Inside::Everything => {
                Judgement::Capture { inside: Inside::Everything, depends_on_git: false }
            }
            Inside::Rules if !here.levels.ignores(path, is_folder) => {
                Judgement::Capture { inside: Inside::Rules, depends_on_git: false }
            }
            Inside::Rules | Inside::Chosen => self.judge_ignored(path, kind, here),
        }
    }

    /// A rule matches. Is it tracked or precious all the same, or does it hold something that is?
    fn judge_ignored(&self, path: &[u8], kind: Kind, here: &Here<'_>) -> Judgement {
        let is_folder = kind == Kind::Folder;
        if self.include.judge(path, is_folder) == Some(Verdict::Ignore) {
            return Judgement::Capture { inside: Inside::Everything, depends_on_git: false };
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        if kind == Kind::File && here.inside == Inside::Rules && name.starts_with(b".env") {
            return Judgement::Capture { inside: Inside::Rules, depends_on_git: false };
        }
        if self.tracks(here, path) {
            return Judgement::Capture { inside: Inside::Rules, depends_on_git: true };
        }
        let holds_some = is_folder
            && (self.include.may_match_below(path)
                || self.forced.has_below(path)
                || self.tracks_below(here, path));
        if holds_some { Judgement::chosen() } else { Judgement::Leave(Gap::Ignored) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Capture { inside: Inside, depends_on_git: bool },
    Leave(Gap),
}

impl Judgement {
    const fn chosen() -> Self {
        Self::Capture { inside: Inside::Chosen, depends_on_git: true }
    }
}

/// How the inside of a folder is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// By the ignore rules.
    Rules,
    /// It is ignored, but holds files that are tracked or precious: only those.
    Chosen,
    /// It is precious as a whole.
    Everything,
}

impl Inside {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Rules => 0,
            Self::Chosen => 1,
            Self::Everything => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Rules, Self::Chosen, Self::Everything]
            .into_iter()
            .find(|inside| inside.code() == code)
    }
}

/// All that bears on the names in one folder.
#[derive(Clone, Copy)]
pub(crate) struct Here<'p> {
    pub(crate) levels: &'p Level<'p>,
    pub(crate) repository: Option<&'p RepositoryHere>,
    /// The index is not the one the cache was made with.
    pub(crate) index_changed: bool,
    pub(crate) inside: Inside,
}

/// A repository, seen from the workspace.
pub(crate) struct RepositoryHere {
    pub(crate) repository: Repository,
    within: Within,
    /// Read when first asked for: most scans never ask.
    tracked: OnceLock<PathSet>,
}

impl Scope<'_> {
    fn tracks(&self, here: &Here<'_>, path: &[u8]) -> bool {
        here.repository
            .is_some_and(|it| it.within.relative(path, |path| self.tracked(it).contains(path)))
    }

    fn tracks_below(&self, here: &Here<'_>, folder: &[u8]) -> bool {
        here.repository.is_some_and(|it| {
            it.within.relative(folder, |folder| self.tracked(it).has_below(folder))
        })
    }

    fn tracked<'r>(&self, here: &'r RepositoryHere) -> &'r PathSet {
        here.tracked.get_or_init(|| {
            (here.repository.load_tracked)().unwrap_or_else(|why| {
                let _the_first_counts = self.untold.set(why);
                PathSet::default()
            })
        })
    }

    /// What git tracks is captured whatever is ignored, so a disk that fails while the index is read fails the scan. An
    /// index that is none does not come here: it tracks nothing, and that is said.
    pub(crate) fn check_tracked(&self) -> crate::Result<()> {
        match self.untold.get() {
            Some(why) => Err(crate::Error::Tracked { why: why.clone() }),
            None => Ok(()),
        }
    }
}

/// One ignore file and those it adds to.
pub(crate) struct Level<'p> {
    parent: Option<&'p Self>,
    within: Within,
    text: Vec<u8>,
    rules: OnceLock<Rules>,
    /// Stands for this level and all it adds to.
    pub(crate) fingerprint: Fingerprint,
}

impl<'p> Level<'p> {
    fn new(seed: Fingerprint, within: Within, text: &[u8]) -> Self {
        let fingerprint = fingerprint([seed.as_slice(), &within.bytes(), text]);
        Self { parent: None, within, text: text.to_owned(), rules: OnceLock::new(), fingerprint }
    }

    /// Puts a level of [`Scope::base_levels`] on top of the one before it.
    pub(crate) fn on_top_of(self, parent: &'p Self) -> Self {
        let fingerprint = fingerprint([parent.fingerprint.as_slice(), &self.fingerprint]);
        Self { parent: Some(parent), fingerprint, ..self }
    }

    /// The level of a folder's own `.gitignore`.
    pub(crate) fn of_folder(parent: &'p Self, folder: &[u8], text: Vec<u8>) -> Self {
        let within = Within::Below(if folder.is_empty() { 0 } else { folder.len() + 1 });
        let content = blake3::hash(&text);
        let fingerprint = fingerprint([parent.fingerprint.as_slice(), content.as_bytes()]);
        Self { parent: Some(parent), within, text, rules: OnceLock::new(), fingerprint }
    }

    fn ignores(&self, path: &[u8], is_folder: bool) -> bool {
        let rules = self.rules.get_or_init(|| Rules::parse(&self.text));
        match self.within.relative(path, |path| rules.judge(path, is_folder)) {
            Some(verdict) => verdict == Verdict::Ignore,
            None => self.parent.is_some_and(|parent| parent.ignores(path, is_folder)),
        }
    }
}

/// Stacks levels of rules on each other and hands on the topmost.
pub(crate) fn with_levels<T>(
    mut levels: Vec<Level<'_>>,
    below: Option<&Level<'_>>,
    then: &mut dyn FnMut(&Level<'_>) -> T,
) -> T {
    let first = levels.remove(0);
    let level = match below {
        Some(below) => first.on_top_of(below),
        None => first,
    };
    if levels.is_empty() { then(&level) } else { with_levels(levels, Some(&level), then) }
}

/// What the rules of a folder and the way it is looked into amount to.
pub(crate) fn rules_fingerprint(here: &Here<'_>) -> Fingerprint {
    fingerprint([here.levels.fingerprint.as_slice(), &[here.inside.code()]])
}

/// Where a folder of the workspace, or above it, stands.
#[derive(Clone, Debug)]
enum Within {
    /// In the workspace: so many bytes of a path lead to it.
    Below(usize),
    /// Above the workspace: these bytes lead from it to the workspace.
    Above(Vec<u8>),
}

impl Within {
    fn relative<T>(&self, path: &[u8], ask: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Below(length) => ask(&path[*length..]),
            Self::Above(way) => ask(&[way.as_slice(), path].concat()),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Below(length) => length.to_le_bytes().to_vec(),
            Self::Above(way) => way.clone(),
        }
    }
}

pub(crate) fn fingerprint<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut short = Fingerprint::default();
    short.copy_from_slice(&hasher.finalize().as_bytes()[..size_of::<Fingerprint>()]);
    short
}
