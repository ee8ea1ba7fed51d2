//! A workspace as a scan sees it: what is as the cache remembers, and what is not.

use std::collections::HashMap;

use bivouac_core::checkpoint::Gap;
use bivouac_core::id::ObjectId;

use crate::beneath::Stat;
use crate::stat_cache::{CachedFolder, CachedNode, Fingerprint, FolderFacts, Totals};
use crate::tree::Content;

/// A folder as it is now.
pub(crate) enum Folder<'c> {
    /// Neither it nor anything below differs from the cache.
    Same(CachedFolder<'c>),
    Changed(Box<ChangedFolder<'c>>),
}

pub(crate) struct ChangedFolder<'c> {
    pub(crate) about: FolderFacts,
    /// Sorted by name.
    pub(crate) children: Vec<(Box<[u8]>, Node<'c>)>,
    /// The tree it had, whose object is in the store.
    pub(crate) previous_tree: Option<ObjectId>,
    /// Filled in, as what follows, once all its files were read.
    pub(crate) tree: Option<ObjectId>,
    pub(crate) totals: Totals,
    /// It or something below has to be looked at whatever a watcher says.
    pub(crate) is_restless: bool,
}

impl ChangedFolder<'_> {
    /// Its tree was made, after those of all folders below it.
    pub(crate) fn complete(&mut self, tree: ObjectId, totals: Totals) {
        self.tree = Some(tree);
        self.totals = totals;
        // An index lies in `.git`, which nobody watches.
        self.is_restless = !self.about.is_trusted
            || self.about.index.is_some()
            || self.children.iter().any(|(_, node)| node.is_restless());
    }
}

pub(crate) enum Node<'c> {
    File(FileNode),
    Link(LinkNode),
    Folder(Folder<'c>),
    Gap { why: Gap, is_folder: bool },
}

pub(crate) struct FileNode {
    pub(crate) stat: Stat,
    pub(crate) is_trusted: bool,
    /// `None` until it was read.
    pub(crate) content: Option<Content>,
}

pub(crate) struct LinkNode {
    pub(crate) stat: Stat,
    pub(crate) is_trusted: bool,
    pub(crate) target: LinkTarget,
}

pub(crate) enum LinkTarget {
    Known(ObjectId),
    Read(Vec<u8>),
}

impl Node<'_> {
    pub(crate) fn gap(why: Gap) -> Self {
        Self::Gap { why, is_folder: false }
    }

    /// Can it change without a watcher of its folder seeing that, or was it not seen for certain?
    pub(crate) fn is_restless(&self) -> bool {
        match self {
            // What is written through another name is told of that name only.
            Self::File(file) => !file.is_trusted || file.stat.n_links > 1,
            Self::Link(link) => !link.is_trusted,
            Self::Folder(Folder::Same(cached)) => cached.is_restless,
            Self::Folder(Folder::Changed(changed)) => changed.is_restless,
            Self::Gap { why, .. } => {
                matches!(why, Gap::Unreadable | Gap::TooLarge | Gap::ChangedWhileRead)
            }
        }
    }
}

impl<'c> Folder<'c> {
    pub(crate) fn changed(
        about: FolderFacts,
        children: Vec<(Box<[u8]>, Node<'c>)>,
        previous_tree: Option<ObjectId>,
    ) -> Self {
        Self::Changed(Box::new(ChangedFolder {
            about,
            children,
            previous_tree,
            tree: None,
            totals: Totals::default(),
            is_restless: true,
        }))
    }

    /// Its tree, and what that holds. Only once its tree was made.
    pub(crate) fn made(&self) -> (ObjectId, Totals) {
        match self {
            Self::Same(cached) => (cached.tree, cached.totals),
            Self::Changed(changed) => {
                (changed.tree.expect("its tree was made before anyone asks"), changed.totals)
            }
        }
    }

    /// Shows every folder, except those below one that is the same. A folder comes before those in it.
    pub(crate) fn each(&self, show: &mut dyn FnMut(&[u8], &Self)) {
        let mut waiting = vec![(Vec::new(), self)];
        while let Some((path, folder)) = waiting.pop() {
            show(&path, folder);
            let Self::Changed(changed) = folder else { continue };
            let below = changed.children.iter().rev().filter_map(|(name, node)| match node {
                Node::Folder(folder) => Some((joined(&path, name), folder)),
                Node::File(_) | Node::Link(_) | Node::Gap { .. } => None,
            });
            waiting.extend(below);
        }
    }
}

/// A path that leads one name further.
pub(crate) fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    join_into(&mut path, folder, name);
    path
}

/// The same, in the place of another path.
pub(crate) fn join_into(path: &mut Vec<u8>, folder: &[u8], name: &[u8]) {
    path.clear();
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// A cached folder with some of its children replaced. `changes` need not be sorted.
pub(crate) fn rebuild<'c>(
    cached: CachedFolder<'c>,
    changes: Vec<(usize, Option<Node<'c>>)>,
    index: Option<Fingerprint>,
) -> Folder<'c> {
    let mut about = FolderFacts { index, ..cached.about };
    about.is_trusted &= changes.iter().all(|(_, node)| node.is_some());
    let mut changes: HashMap<usize, Option<Node<'c>>> = changes.into_iter().collect();
    let mut children = Vec::with_capacity(cached.len());
    for (at, (name, node)) in cached.children().enumerate() {
        let node = match changes.remove(&at) {
            Some(changed) => changed,
            None => Some(node.into()),
        };
        children.extend(node.map(|node| (Box::from(name), node)));
    }
    Folder::changed(about, children, Some(cached.tree))
}

impl<'c> From<CachedNode<'c>> for Node<'c> {
    fn from(cached: CachedNode<'c>) -> Self {
        match cached {
            CachedNode::File { stat, is_trusted, content } => {
                Self::File(FileNode { stat, is_trusted, content: Some(content) })
            }
            CachedNode::Link { stat, is_trusted, target } => {
                Self::Link(LinkNode { stat, is_trusted, target: LinkTarget::Known(target) })
            }
            CachedNode::Folder(folder) => Self::Folder(Folder::Same(folder)),
            CachedNode::Gap { why, is_folder } => Self::Gap { why, is_folder },
        }
    }
}
