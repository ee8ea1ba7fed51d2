//! Which files of a scan belong to a database, and what the scan records of them.
//!
//! The siblings follow the database, whatever the ignore rules say of their names. A checkpoint that holds `X`
//! without `X-wal` lacks transactions, and one that holds `X-wal` without `X` would put an old log beside a
//! newer database.

use bivouac_core::checkpoint::Gap;

use crate::Result;
use crate::beneath::Root;
use crate::database::read::{DatabaseReader, Member, Members, Reading};
use crate::database::{MAIN, SHM, is_main, main_of, members, wal_header};
use crate::node::{ChangedFolder, FileNode, Folder, Node};
use crate::take::Sink;

/// The paths of what may be databases with siblings, of which something is still to be read or decided. Only
/// names are looked at, and only in folders in which something changed.
pub(crate) fn find(root: &Folder<'_>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders = vec![(Vec::new(), root)];
    while let Some((path, folder)) = folders.pop() {
        let Folder::Changed(folder) = folder else { continue };
        let mut mains: Vec<&[u8]> =
            folder.children.iter().filter_map(|(name, _)| main_of(name)).collect();
        mains.sort_unstable();
        mains.dedup();
        let due = mains.into_iter().filter(|main| is_due(folder, main));
        found.extend(due.map(|main| join(&path, main)));
        for (name, node) in &folder.children {
            if let Node::Folder(below @ Folder::Changed(_)) = node {
                folders.push((join(&path, name), below));
            }
        }
    }
    found
}

/// Is something unread, or captured while something else is not?
fn is_due(folder: &ChangedFolder<'_>, main: &[u8]) -> bool {
    let nodes = members(main).map(|name| child(folder, &name));
    let gap = |node: &Node<'_>| match node {
        Node::Gap { why, is_folder: false } => Some(*why),
        _ => None,
    };
    match nodes[MAIN] {
        Some(Node::File(_)) => nodes.iter().flatten().any(|node| match node {
            Node::File(file) => file.content.is_none(),
            other => gap(other).is_some(),
        }),
        // Our own journal is among these. It must not be opened: SQLite's locks of this process would go when
        // the file is closed.
        Some(Node::Gap { why: Gap::OwnState, .. }) => false,
        Some(main) if gap(main).is_some() => nodes.iter().flatten().any(|node| match node {
            Node::File(_) => true,
            other => gap(other).is_some() && gap(other) != gap(main),
        }),
        _ => false,
    }
}

/// Reads one database and records all of it, or a gap for each of its files.
pub(crate) fn capture(
    root: &mut Folder<'_>,
    main: &[u8],
    reader: &DatabaseReader<'_>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let (way, name) = match main.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&main[..slash], &main[slash + 1..]),
        None => (&b""[..], main),
    };
    let Some(folder) = folder_at(root, way) else { return Ok(()) };
    match child(folder, name) {
        // One that was met while it was written is a gap so far.
        Some(Node::File(_) | Node::Gap { why: Gap::ChangedWhileRead, is_folder: false })
            if is_database(reader.root, main) =>
        {
            match reader.read(main, &known(folder, name), sink)? {
                Reading::Whole(found) => record(folder, name, &found),
                Reading::Gap(why) => leave_out(folder, name, why),
                Reading::Gone => {
                    if let Ok(place) = place(folder, name) {
                        folder.children.remove(place);
                        folder.about.is_trusted = false;
                    }
                }
            }
        }
        Some(Node::Gap { why: Gap::OwnState, .. }) => {}
        Some(Node::Gap { why, is_folder: false }) if may_be_database(reader.root, main) => {
            let why = *why;
            leave_out(folder, name, why);
        }
        _ => {}
    }
    Ok(())
}

/// An encrypted database is known by its write-ahead log.
fn is_database(root: &Root, main: &[u8]) -> bool {
    let wal = [main, b"-wal"].concat();
    root.open_file(main).is_ok_and(|file| is_main(&file))
        || root.open_file(&wal).is_ok_and(|file| wal_header(&file).is_some())
}

/// The same; one that cannot be opened may be a database.
fn may_be_database(root: &Root, main: &[u8]) -> bool {
    root.open_file(main).is_err() || is_database(root, main)
}

/// What the walk vouched for, and need not be read again.
fn known(folder: &ChangedFolder<'_>, main: &[u8]) -> Members {
    members(main).map(|name| match child(folder, &name) {
        Some(Node::File(FileNode { stat, content: Some(content), .. })) => {
            Some(Member { stat: *stat, content: *content })
        }
        _ => None,
    })
}

fn record(folder: &mut ChangedFolder<'_>, main: &[u8], found: &Members) {
    for (at, name) in members(main).into_iter().enumerate() {
        let place = place(folder, &name);
        let Some(Member { stat, content }) = found[at] else {
            if let Ok(place) = place
                && matches!(folder.children[place].1, Node::File(_) | Node::Gap { .. })
            {
                folder.children.remove(place);
                folder.about.is_trusted = false;
            }
            continue;
        };
        // SQLite writes the index through a mapping, which no stat shows.
        let is_vouched_for = |node: &Node<'_>| match node {
            Node::File(file) => at != SHM && file.is_trusted && file.stat.is_same(&stat),
            _ => false,
        };
        let node = |is_trusted| Node::File(FileNode { stat, is_trusted, content: Some(content) });
        match place {
            Ok(place) => {
                let is_trusted = is_vouched_for(&folder.children[place].1);
                folder.children[place].1 = node(is_trusted);
            }
            Err(place) => {
                folder.children.insert(place, (name.into(), node(false)));
                folder.about.is_trusted = false;
            }
        }
    }
}

fn leave_out(folder: &mut ChangedFolder<'_>, main: &[u8], why: Gap) {
    for name in members(main) {
        if let Ok(place) = place(folder, &name)
            && matches!(
                folder.children[place].1,
                Node::File(_) | Node::Gap { is_folder: false, .. }
            )
        {
            folder.children[place].1 = Node::gap(why);
        }
    }
}

fn place(folder: &ChangedFolder<'_>, name: &[u8]) -> Result<usize, usize> {
    folder.children.binary_search_by(|(own, _)| own.as_ref().cmp(name))
}

fn child<'f, 'c>(folder: &'f ChangedFolder<'c>, name: &[u8]) -> Option<&'f Node<'c>> {
    place(folder, name).ok().map(|place| &folder.children[place].1)
}

/// The folder at a path, if something changed in it.
fn folder_at<'f, 'c>(root: &'f mut Folder<'c>, path: &[u8]) -> Option<&'f mut ChangedFolder<'c>> {
    let mut at = root;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        let Folder::Changed(folder) = at else { return None };
        let place = place(folder, name).ok()?;
        let Node::Folder(below) = &mut folder.children[place].1 else { return None };
        at = below;
    }
    match at {
        Folder::Changed(folder) => Some(folder),
        Folder::Same(_) => None,
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder.is_empty() {
        true => name.to_vec(),
        false => [folder, b"/", name].concat(),
    }
}
