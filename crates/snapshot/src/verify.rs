//! Is everything that a checkpoint needs there and as it was written?

use std::collections::{HashMap, HashSet};

use bivouac_core::id::ObjectId;
use bivouac_core::path::RelPath;
use rayon::prelude::*;

use crate::Result;
use crate::objects::{Objects, Place};
use crate::tree::{Content, Entry, Tree};

/// Something a checkpoint needs and does not have. `path` is `None` for the root folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub path: Option<RelPath>,
    pub object: ObjectId,
}

/// Walks trees and remembers what it has seen, so that a thousand checkpoints of one project cost
/// little more than one.
#[derive(Default)]
pub struct Verifier {
    whole_trees: HashSet<ObjectId>,
    contents: HashMap<ObjectId, bool>,
}

/// A tree that is being walked.
struct Frame {
    path: Option<RelPath>,
    id: ObjectId,
    tree: Tree,
    n_read: usize,
    /// How many losses were known before it.
    n_losses: usize,
}

impl Verifier {
    /// Everything missing below a tree. `objects` must know only objects that were read and checked.
    ///
    /// Frames on the heap take the place of recursion: nobody knows how deep a stored tree is.
    pub fn losses(&mut self, objects: &Objects<'_>, tree: &ObjectId) -> Result<Vec<Loss>> {
        let mut losses = Vec::new();
        let mut frames: Vec<Frame> =
            self.open(objects, None, *tree, &mut losses)?.into_iter().collect();
        while let Some(frame) = frames.last_mut() {
            let Some((name, entry)) = frame.tree.at(frame.n_read) else {
                let is_whole = losses.len() == frame.n_losses;
                let id = frame.id;
                frames.pop();
                if is_whole {
                    self.whole_trees.insert(id);
                }
                continue;
            };
            frame.n_read += 1;
            let path = match &frame.path {
                Some(folder) => folder.join(name),
                None => RelPath::new(name),
            };
            let path = path.expect("a decoded tree has only plain names");
            let content = match *entry {
                Entry::Folder { tree, .. } => {
                    frames.extend(self.open(objects, Some(path), tree, &mut losses)?);
                    continue;
                }
                Entry::Gap { .. } => continue,
                Entry::Link(id) => Content::Whole(id),
                Entry::File(file) => file.content,
            };
            if !self.has_content(objects, &content)? {
                losses.push(Loss { path: Some(path), object: *content.id() });
            }
        }
        Ok(losses)
    }

    /// A tree to look into. One that is whole need not be, and one that is lost cannot be.
    fn open(
        &self,
        objects: &Objects<'_>,
        path: Option<RelPath>,
        id: ObjectId,
        losses: &mut Vec<Loss>,
    ) -> Result<Option<Frame>> {
        if self.whole_trees.contains(&id) {
            return Ok(None);
        }
        match objects.tree(&id) {
            Ok(tree) => Ok(Some(Frame { path, id, tree, n_read: 0, n_losses: losses.len() })),
            Err(error) if error.is_damage() => {
                losses.push(Loss { path, object: id });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn has_content(&mut self, objects: &Objects<'_>, content: &Content) -> Result<bool> {
        if let Some(known) = self.contents.get(content.id()) {
            return Ok(*known);
        }
        let is_there = match content {
            Content::Whole(id) => objects.contains(id)?,
            Content::Chunked(id) => match objects.chunk_list(id) {
                Ok(list) => {
                    let mut all = true;
                    for (chunk, _) in &list.chunks {
                        all &= objects.contains(chunk)?;
                    }
                    all
                }
                Err(error) if error.is_damage() => false,
                Err(error) => return Err(error),
            },
        };
        self.contents.insert(*content.id(), is_there);
        Ok(is_there)
    }
}

/// Reads contents back from the store, every block once. Answers those that cannot be given back.
pub fn unreadable(
    objects: &Objects<'_>,
    contents: impl Iterator<Item = Content>,
) -> Result<HashSet<ObjectId>> {
    let mut lost = HashSet::new();
    // Where the pieces of each content are.
    let mut needed: HashMap<Place, Vec<ObjectId>> = HashMap::new();
    for content in contents {
        match pieces(objects, &content) {
            Ok(places) => {
                places.into_iter().for_each(|it| needed.entry(it).or_default().push(*content.id()));
            }
            Err(error) if error.is_damage() => {
                lost.insert(*content.id());
            }
            Err(error) => return Err(error),
        }
    }
    let packs = objects.packs();
    let damaged: Vec<ObjectId> = needed
        .into_par_iter()
        .filter(|(place, _)| packs.check_block(*place).is_err())
        .flat_map(|(_, contents)| contents)
        .collect();
    lost.extend(damaged);
    Ok(lost)
}

/// The places a content is read from.
fn pieces(objects: &Objects<'_>, content: &Content) -> Result<Vec<Place>> {
    let mut ids = vec![*content.id()];
    if let Content::Chunked(id) = content {
        ids.extend(objects.chunk_list(id)?.chunks.iter().map(|(chunk, _)| *chunk));
    }
    ids.iter().map(|id| objects.locate(id)).collect()
}
