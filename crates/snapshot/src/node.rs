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

    /// Shows every folder, except those below one that is the same.
    pub(crate) fn each(&self, path: &mut Vec<u8>, show: &mut dyn FnMut(&mut Vec<u8>, &Self)) {
        show(path, self);
        let Self::Changed(changed) = self else { return };
        for (name, node) in &changed.children {
            if let Node::Folder(folder) = node {
                with_name(path, name, |path| folder.each(path, show));
            }
        }
    }
}

/// Does something with a path that leads one name further.
pub(crate) fn with_name<T>(
    path: &mut Vec<u8>,
    name: &[u8],
    then: impl FnOnce(&mut Vec<u8>) -> T,
) -> T {
    let length = path.len();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    let done = then(path);
    path.truncate(length);
    done
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
