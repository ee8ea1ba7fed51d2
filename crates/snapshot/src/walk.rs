//! Looking at a workspace: every folder and file is compared with what the cache remembers.
//!
//! A folder whose own stat did not change has the same list of names, so it is not even opened;
//! then a scan is one `lstat` for each file and folder, on all cores. What did not change stays a
//! reference into the cache and costs nothing further.
//!
//! Where a watcher tells what changed, the rest is not even looked at, unless it is restless.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use bivouac_core::checkpoint::Gap;
use rayon::prelude::*;

use crate::beneath::{Kind, Named, Stat, is_gone};
use crate::node::{FileNode, Folder, LinkNode, LinkTarget, Node, join_into, joined, rebuild};
use crate::place::{Closed, Place, on_another_stack};
use crate::scope::{
    Here, Inside, Judgement, Level, RepositoryHere, Scope, rules_fingerprint, with_levels,
};
use crate::since::Since;
use crate::stat_cache::{CachedFolder, CachedNode, Fingerprint, FolderFacts};

/// Subtrees with a cache record larger than this are shared out among the cores.
const WORTH_SHARING: usize = 16 << 10;
/// Down to this depth only, so that a thread that waits for another one, and meanwhile takes over some of its
/// work, does not pile one deep walk on the other.
const SHARED_DEPTH: usize = 32;
/// The walk recurses, and its caller may have little stack left. So it goes on in a thread of its own, with a
/// stack of its own, each time it is so many folders deeper. Few trees are that deep.
const DEPTH_PER_STACK: usize = 32;
/// A folder deeper than this is recorded as a gap. Paths of this depth are still far from what other programs
/// can follow, and what comes after the walk recurses too, with small frames.
const MAX_DEPTH: usize = 512;
const IGNORE_FILE: &[u8] = b".gitignore";
const MAX_IGNORE_FILE: u64 = 16 << 20;

pub(crate) struct Walk<'a, 'c> {
    pub(crate) scope: Scope<'a>,
    /// When the scan began, by the file system's clock.
    now_ns: i64,
    /// What an earlier scan saw.
    known: Option<CachedFolder<'c>>,
    /// A file was met that has more names, and had not when the cache was written.
    is_newly_shared: AtomicBool,
}

/// The names in a folder.
enum List<'c> {
    /// Those the cache remembers, which cannot have changed.
    Known(CachedFolder<'c>),
    Read(Vec<Named>),
}

/// A subfolder still to be looked at: its place among the children, its path, what the cache
/// remembers and how its inside is judged.
type Subfolder<'c> = (usize, Vec<u8>, Option<CachedFolder<'c>>, Inside);

impl<'a, 'c> Walk<'a, 'c> {
    pub(crate) fn new(scope: Scope<'a>, now_ns: i64, known: Option<CachedFolder<'c>>) -> Self {
        Self { scope, now_ns, known, is_newly_shared: AtomicBool::new(false) }
    }

    /// Looks at the workspace: at all of it, or at what changed.
    pub(crate) fn run(&self, since: Since<'_>) -> io::Result<Folder<'c>> {
        let root = self.root(since).map_err(io::Error::from)?;
        // Nobody says where the file's other names are, nor what was written through them.
        if matches!(since, Since::Only(_)) && self.is_newly_shared.load(Ordering::Relaxed) {
            return self.root(Since::Unknown).map_err(io::Error::from);
        }
        Ok(root)
    }

    fn root(&self, since: Since<'_>) -> Result<Folder<'c>, Closed> {
        let place = Place::top(self.scope.root, since)?;
        let known = self.known.filter(|known| known.about.mount == place.mount);
        let list = self.list(&place, known)?;
        let repository = self.scope.repository_at(b"");
        self.at_top(&place, (known, list), repository.as_ref(), Inside::Rules)
    }

    /// Looks at a folder, which may be the top of a repository of its own.
    fn folder(
        &self,
        place: &Place<'_>,
        here: Here<'_>,
        cached: Option<CachedFolder<'c>>,
    ) -> Result<Folder<'c>, Closed> {
        let list = self.list(place, cached)?;
        let is_top = match &list {
            List::Known(cached) => cached.about.index.is_some(),
            List::Read(names) => has_name(names, b".git"),
        };
        let repository = if is_top { self.scope.repository_at(place.path) } else { None };
        match repository {
            None => self.by_rules(place, here, (cached, list), None),
            Some(repository) => {
                let inside = if here.inside == Inside::Everything {
                    Inside::Everything
                } else {
                    Inside::Rules
                };
                self.at_top(place, (cached, list), Some(&repository), inside)
            }
        }
    }

    fn list(
        &self,
        place: &Place<'_>,
        cached: Option<CachedFolder<'c>>,
    ) -> Result<List<'c>, Closed> {
        match cached {
            Some(cached) if self.is_list_current(place, &cached) => Ok(List::Known(cached)),
            _ => Ok(List::Read(self.scope.root.list(place.path)?)),
        }
    }

    fn is_list_current(&self, place: &Place<'_>, cached: &CachedFolder<'_>) -> bool {
        let about = &cached.about;
        about.is_trusted && about.stat.is_same(&place.stat) && place.file_system.proves_lists()
    }

    /// The top of a repository, or of a workspace without one: the rules start afresh.
    fn at_top(
        &self,
        place: &Place<'_>,
        (cached, list): (Option<CachedFolder<'c>>, List<'c>),
        repository: Option<&RepositoryHere>,
        inside: Inside,
    ) -> Result<Folder<'c>, Closed> {
        let index = repository.map(|it| it.repository.index);
        let index_changed = cached.is_some_and(|cached| cached.about.index != index);
        let mut input = Some((cached, list));
        with_levels(self.scope.base_levels(repository), None, &mut |levels| {
            let here = Here { levels, repository, index_changed, inside };
            let input = input.take().expect("the levels are stacked once");
            self.by_rules(place, here, input, index)
        })
    }

    /// Adds the folder's own ignore file to the rules, then looks.
    fn by_rules(
        &self,
        place: &Place<'_>,
        here: Here<'_>,
        (cached, list): (Option<CachedFolder<'c>>, List<'c>),
        index: Option<Fingerprint>,
    ) -> Result<Folder<'c>, Closed> {
        let may_have_rules = match &list {
            List::Known(cached) => cached.about.has_ignore_file,
            List::Read(names) => has_name(names, IGNORE_FILE),
        };
        let read = || self.scope.root.read_small(&joined(place.path, IGNORE_FILE), MAX_IGNORE_FILE);
        let level = may_have_rules
            .then(read)
            .flatten()
            .map(|text| Level::of_folder(here.levels, place.path, text));
        let here = Here { levels: level.as_ref().unwrap_or(here.levels), ..here };
        let about = FolderFacts {
            stat: place.stat,
            inside: here.inside,
            is_trusted: place.stat.is_settled(self.now_ns) && place.file_system.proves_lists(),
            is_touchy: false,
            has_ignore_file: level.is_some(),
            rules: rules_fingerprint(&here),
            index,
            mount: place.mount,
        };
        // Under other rules, what is known of the names says nothing: any of them may belong here now.
        let is_by_same_rules = cached.is_some_and(|cached| cached.about.rules == about.rules);
        let since = if is_by_same_rules { place.since } else { Since::Unknown };
        let place = &Place { since, ..*place };
        let names = match list {
            List::Known(cached) if is_by_same_rules && !self.is_shaken(place, &cached, &here) => {
                return Ok(self.revisit(place, here, cached, index));
            }
            List::Known(_) => self.scope.root.list(place.path)?,
            List::Read(names) => names,
        };
        Ok(self.visit(place, here, (cached, names), about))
    }

    /// Could something other than the rules have changed what belongs here?
    fn is_shaken(&self, place: &Place<'_>, cached: &CachedFolder<'_>, here: &Here<'_>) -> bool {
        (here.index_changed && cached.about.is_touchy) || self.scope.forced.has_below(place.path)
    }

    /// The same names by the same rules: only the children themselves can have changed.
    fn revisit(
        &self,
        place: &Place<'_>,
        here: Here<'_>,
        cached: CachedFolder<'c>,
        index: Option<Fingerprint>,
    ) -> Folder<'c> {
        let mut path = Vec::with_capacity(place.path.len() + 64);
        let mut changes: Vec<(usize, Option<Node<'c>>)> = Vec::new();
        let mut folders: Vec<Subfolder<'c>> = Vec::new();
        for (at, (name, node)) in cached.children().enumerate() {
            join_into(&mut path, place.path, name);
            match node {
                CachedNode::Folder(folder) => {
                    folders.push((at, path.clone(), Some(folder), folder.about.inside));
                }
                CachedNode::Gap { why: Gap::Unreadable, is_folder: true } => {
                    folders.push((at, path.clone(), None, here.inside));
                }
                other if place.is_certain(&path, other) => {}
                other => {
                    changes.extend(self.look_again(place, &path, other).map(|change| (at, change)));
                }
            }
        }
        for (at, node) in self.folders(place, here, folders, cached.weight()) {
            match node {
                Some(Node::Folder(Folder::Same(_)))
                | Some(Node::Gap { why: Gap::Unreadable, is_folder: true }) => {}
                changed => changes.push((at, changed)),
            }
        }
        // The fingerprint of the index stands in the record: a new index alone makes a new record.
        if changes.is_empty() && cached.about.index == index {
            return Folder::Same(cached);
        }
        rebuild(cached, changes, index)
    }

    /// `None` when nothing changed; `Some(None)` when it is gone.
    fn look_again(
        &self,
        place: &Place<'_>,
        path: &[u8],
        cached: CachedNode<'c>,
    ) -> Option<Option<Node<'c>>> {
        let (before, is_trusted) = match cached {
            CachedNode::File { stat, is_trusted, .. } => (stat, is_trusted),
            CachedNode::Link { stat, is_trusted, .. } => (stat, is_trusted),
            CachedNode::Gap { why: Gap::TooLarge, .. } => {
                let now = self.file_or_link(place, path, None);
                let is_still = matches!(now, Some(Node::Gap { why: Gap::TooLarge, .. }));
                return (!is_still).then_some(now);
            }
            CachedNode::Gap { why: Gap::Unreadable, .. } => {
                let is_open = self.scope.root.open_file(path).is_ok();
                return is_open.then(|| self.file_or_link(place, path, None));
            }
            CachedNode::Gap { why: Gap::ChangedWhileRead, .. } => {
                return Some(self.file_or_link(place, path, None));
            }
            CachedNode::Gap { .. } | CachedNode::Folder(_) => return None,
        };
        match self.scope.root.stat(path) {
            Ok(stat) if is_trusted && place.is_same(&stat, &before) => None,
            _ => Some(self.file_or_link(place, path, Some(cached))),
        }
    }

    /// Looks at every name anew.
    fn visit(
        &self,
        place: &Place<'_>,
        here: Here<'_>,
        (cached, names): (Option<CachedFolder<'c>>, Vec<Named>),
        mut about: FolderFacts,
    ) -> Folder<'c> {
        let mut known = cached.map(|cached| cached.children().peekable());
        let mut path = Vec::with_capacity(place.path.len() + 64);
        let mut children: Vec<(Box<[u8]>, Option<Node<'c>>)> = Vec::with_capacity(names.len());
        let mut folders: Vec<Subfolder<'c>> = Vec::new();
        for Named { name, kind } in names.into_iter().filter(|it| it.name.as_ref() != b".git") {
            join_into(&mut path, place.path, &name);
            let cached = known.as_mut().and_then(|known| {
                while known.next_if(|(own, _)| *own < name.as_ref()).is_some() {}
                known.next_if(|(own, _)| *own == name.as_ref()).map(|(_, node)| node)
            });
            let kind = kind.or_else(|| self.scope.root.stat(&path).ok().map(|stat| stat.kind));
            let node = match kind.map(|kind| (kind, self.scope.judge(&path, kind, &here))) {
                None => None,
                Some((kind, Judgement::Leave(why))) => {
                    about.is_touchy |= why == Gap::Ignored;
                    Some(Node::Gap { why, is_folder: kind == Kind::Folder })
                }
                Some((Kind::Folder, Judgement::Capture { inside, depends_on_git })) => {
                    about.is_touchy |= depends_on_git;
                    folders.push((
                        children.len(),
                        path.clone(),
                        cached.and_then(CachedNode::folder),
                        inside,
                    ));
                    None
                }
                Some((_, Judgement::Capture { depends_on_git, .. })) => {
                    about.is_touchy |= depends_on_git;
                    self.listed(place, &path, cached)
                }
            };
            children.push((name, node));
        }
        for (at, node) in self.folders(place, here, folders, usize::MAX) {
            children[at].1 = node;
        }
        // A name that vanished while we looked makes the list doubtful.
        about.is_trusted &= children.iter().all(|(_, node)| node.is_some());
        let children =
            children.into_iter().filter_map(|(name, node)| Some((name, node?))).collect();
        Folder::changed(about, children, cached.map(|cached| cached.tree))
    }

    /// A file or link that is captured. `None` when it is gone.
    fn listed(
        &self,
        place: &Place<'_>,
        path: &[u8],
        cached: Option<CachedNode<'c>>,
    ) -> Option<Node<'c>> {
        match cached {
            Some(cached @ (CachedNode::File { .. } | CachedNode::Link { .. }))
                if place.is_certain(path, cached) =>
            {
                Some(cached.into())
            }
            _ => self.file_or_link(place, path, cached),
        }
    }

    /// Looks at subfolders, side by side where it pays. `None` stands for one that is gone.
    fn folders(
        &self,
        place: &Place<'_>,
        here: Here<'_>,
        folders: Vec<Subfolder<'c>>,
        weight: usize,
    ) -> Vec<(usize, Option<Node<'c>>)> {
        let look = |(at, path, cached, inside): Subfolder<'c>| {
            (at, self.subfolder(&path, place, Here { inside, ..here }, cached))
        };
        if weight > WORTH_SHARING && folders.len() > 1 && place.depth < SHARED_DEPTH {
            return folders.into_par_iter().map(look).collect();
        }
        folders.into_iter().map(look).collect()
    }

    fn subfolder(
        &self,
        path: &[u8],
        above: &Place<'_>,
        here: Here<'_>,
        cached: Option<CachedFolder<'c>>,
    ) -> Option<Node<'c>> {
        if let Some(cached) = cached
            && !here.index_changed
            && above.is_certain(path, CachedNode::Folder(cached))
        {
            return Some(Node::Folder(Folder::Same(cached)));
        }
        let unreadable = Some(Node::Gap { why: Gap::Unreadable, is_folder: true });
        let depth = above.depth + 1;
        if depth > MAX_DEPTH {
            return unreadable;
        }
        let looked = match self.scope.root.stat(path) {
            Ok(stat) if stat.kind == Kind::Folder => {
                above.enter(self.scope.root, path, stat).and_then(|place| {
                    // What was seen when another file system was here says nothing about this one.
                    let cached = cached.filter(|cached| cached.about.mount == place.mount);
                    match depth % DEPTH_PER_STACK {
                        0 => on_another_stack(|| self.folder(&place, here, cached))?,
                        _ => self.folder(&place, here, cached),
                    }
                })
            }
            Ok(_) => return self.file_or_link(above, path, None),
            Err(error) => Err(error.into()),
        };
        match looked {
            Ok(folder) => Some(Node::Folder(folder)),
            Err(Closed::Gone) => None,
            Err(Closed::Unreadable) => unreadable,
        }
    }

    /// A file's bytes are read later, many at once; a link is read here. `None` when it is gone.
    fn file_or_link(
        &self,
        place: &Place<'_>,
        path: &[u8],
        cached: Option<CachedNode<'c>>,
    ) -> Option<Node<'c>> {
        let stat = match self.scope.root.stat(path) {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => return None,
            Err(_) => return Some(Node::gap(Gap::Unreadable)),
        };
        match stat.kind {
            Kind::File if self.scope.is_too_large(stat.size) => Some(Node::gap(Gap::TooLarge)),
            Kind::File => Some(Node::File(self.file(place, stat, cached))),
            Kind::Link => self.link(place, (path, stat), cached),
            // It was something else a moment ago.
            Kind::Folder => Some(Node::Gap { why: Gap::ChangedWhileRead, is_folder: true }),
            Kind::Special => Some(Node::gap(Gap::Special)),
        }
    }

    fn file(&self, place: &Place<'_>, stat: Stat, cached: Option<CachedNode<'_>>) -> FileNode {
        if stat.n_links > 1 && !is_same_shared_file(&stat, cached) {
            self.is_newly_shared.store(true, Ordering::Relaxed);
        }
        match cached {
            Some(CachedNode::File { stat: before, is_trusted: true, content })
                if place.is_same(&stat, &before) =>
            {
                FileNode { stat, is_trusted: true, content: Some(content) }
            }
            _ => {
                let is_trusted = place.file_system.proves_contents(&stat) && self.is_at_rest(&stat);
                FileNode { stat, is_trusted, content: None }
            }
        }
    }

    /// Must any later change of a file's bytes show? A program that has it mapped into memory can change
    /// a page again, unseen, until the kernel has written it out. The first scan of a workspace does
    /// without that care: nearly all it sees may be new, and none of it being changed.
    fn is_at_rest(&self, stat: &Stat) -> bool {
        const WRITTEN_OUT_NS: i64 = 60_000_000_000;
        stat.is_settled(self.now_ns - if self.known.is_none() { 0 } else { WRITTEN_OUT_NS })
    }

    fn link(
        &self,
        place: &Place<'_>,
        (path, stat): (&[u8], Stat),
        cached: Option<CachedNode<'c>>,
    ) -> Option<Node<'c>> {
        let is_settled = place.file_system.proves_contents(&stat) && stat.is_settled(self.now_ns);
        let (is_trusted, target) = match cached {
            Some(CachedNode::Link { stat: before, is_trusted: true, target })
                if place.is_same(&stat, &before) =>
            {
                (true, LinkTarget::Known(target))
            }
            _ => match self.scope.root.read_link(path) {
                Ok(target) => (is_settled, LinkTarget::Read(target)),
                Err(error) if is_gone(&error) => return None,
                Err(_) => return Some(Node::gap(Gap::ChangedWhileRead)),
            },
        };
        Some(Node::Link(LinkNode { stat, is_trusted, target }))
    }
}

/// All names of such a file are restless already.
fn is_same_shared_file(stat: &Stat, cached: Option<CachedNode<'_>>) -> bool {
    matches!(cached, Some(CachedNode::File { stat: before, .. })
        if before.n_links > 1 && before.inode == stat.inode)
}

fn has_name(names: &[Named], name: &[u8]) -> bool {
    names.binary_search_by(|own| own.name.as_ref().cmp(name)).is_ok()
}
