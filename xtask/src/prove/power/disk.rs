//! A disk as plain data: what is in which folder under which name, and what can be done to it.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) type Ino = usize;
pub(super) type Name = Vec<u8>;

/// What the folder is called in which everything is.
pub(super) const TOP: Ino = 0;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    File(Arc<Vec<u8>>),
    Folder(BTreeMap<Name, Ino>),
    Link(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) what: What,
    pub(super) mode: u32,
}

/// Something that was done.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A name for a node, new or old.
    Name {
        folder: Ino,
        name: Name,
        ino: Ino,
    },
    Remove {
        folder: Ino,
        name: Name,
    },
    Rename {
        from: (Ino, Name),
        to: (Ino, Name),
        swaps: bool,
    },
    Write {
        ino: Ino,
        at: u64,
        bytes: Arc<Vec<u8>>,
    },
    Cut {
        ino: Ino,
        length: u64,
    },
    Mode {
        ino: Ino,
        mode: u32,
    },
    /// What was done to this node before call `since` is now on the disk.
    Sync {
        ino: Ino,
        with_mode: bool,
        since: usize,
    },
    SyncAll {
        since: usize,
    },
    /// Someone was told.
    Said,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) nodes: Vec<Node>,
}

impl Disk {
    /// Everything below a folder but what `is_left_out` says, by its path from there.
    pub(super) fn read(top: &Path, is_left_out: &dyn Fn(&Path) -> bool) -> io::Result<Self> {
        let mut disk = Self::default();
        let mut seen = BTreeMap::new();
        disk.read_into(top, (top, is_left_out), &mut seen)?;
        Ok(disk)
    }

    fn read_into(
        &mut self,
        path: &Path,
        about: (&Path, &dyn Fn(&Path) -> bool),
        seen: &mut BTreeMap<u64, Ino>,
    ) -> io::Result<Ino> {
        let meta = fs::symlink_metadata(path)?;
        if let Some(ino) = seen.get(&meta.ino()) {
            return Ok(*ino);
        }
        let mode = meta.mode() & 0o7777;
        if !meta.is_dir() {
            let what = match meta.is_symlink() {
                true => What::Link(fs::read_link(path)?.into_os_string().into_vec()),
                false => What::File(Arc::new(fs::read(path)?)),
            };
            let ino = self.add(what, mode);
            seen.insert(meta.ino(), ino);
            return Ok(ino);
        }
        let ino = self.add(What::Folder(BTreeMap::new()), mode);
        for entry in fs::read_dir(path)? {
            let (path, name) = entry.map(|it| (it.path(), it.file_name().into_vec()))?;
            if (about.1)(path.strip_prefix(about.0).unwrap_or(&path)) {
                continue;
            }
            let child = self.read_into(&path, about, seen)?;
            if let Some(names) = self.names_mut(ino) {
                names.insert(name, child);
            }
        }
        Ok(ino)
    }

    pub(super) fn add(&mut self, what: What, mode: u32) -> Ino {
        self.nodes.push(Node { what, mode });
        self.nodes.len() - 1
    }

    pub(super) fn names(&self, ino: Ino) -> Option<&BTreeMap<Name, Ino>> {
        match &self.nodes[ino].what {
            What::Folder(names) => Some(names),
            What::File(_) | What::Link(_) => None,
        }
    }

    fn names_mut(&mut self, ino: Ino) -> Option<&mut BTreeMap<Name, Ino>> {
        match &mut self.nodes[ino].what {
            What::Folder(names) => Some(names),
            What::File(_) | What::Link(_) => None,
        }
    }

    /// What is at a path of names.
    pub(super) fn find(&self, names: &[Name]) -> Option<Ino> {
        names.iter().try_fold(TOP, |ino, name| self.names(ino)?.get(name).copied())
    }

    /// Does it, as far as it makes sense here.
    pub(super) fn apply(&mut self, op: &Op) {
        match op {
            Op::Name { folder, name, ino } => self.name(*folder, name, Some(*ino)),
            Op::Remove { folder, name } => self.name(*folder, name, None),
            Op::Rename { from, to, swaps } => {
                let at = |disk: &Self, (folder, name): &(Ino, Name)| {
                    disk.names(*folder).and_then(|names| names.get(name).copied())
                };
                let (moved, other) = (at(self, from), at(self, to));
                if moved.is_some() && (!swaps || other.is_some()) {
                    self.name(from.0, &from.1, other.filter(|_| *swaps));
                    self.name(to.0, &to.1, moved);
                }
            }
            Op::Write { ino, at, bytes } => self.write(*ino, *at, bytes),
            Op::Cut { ino, length } => {
                if let Some(content) = self.content(*ino) {
                    content.resize(*length as usize, 0);
                }
            }
            Op::Mode { ino, mode } => self.nodes[*ino].mode = *mode,
            Op::Sync { .. } | Op::SyncAll { .. } | Op::Said => {}
        }
    }

    fn name(&mut self, folder: Ino, name: &Name, ino: Option<Ino>) {
        let Some(names) = self.names_mut(folder) else { return };
        match ino {
            Some(ino) => names.insert(name.clone(), ino),
            None => names.remove(name),
        };
    }

    pub(super) fn write(&mut self, ino: Ino, at: u64, bytes: &[u8]) {
        let at = at as usize;
        if let Some(content) = self.content(ino) {
            if content.len() < at + bytes.len() {
                content.resize(at + bytes.len(), 0);
            }
            content[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The bytes of a file, to be changed.
    pub(super) fn content(&mut self, ino: Ino) -> Option<&mut Vec<u8>> {
        match &mut self.nodes[ino].what {
            What::File(content) => Some(Arc::make_mut(content)),
            What::Folder(_) | What::Link(_) => None,
        }
    }

    /// Every path there is, with what is there. Nodes that lost their last name are not.
    pub(super) fn paths(&self) -> BTreeMap<PathBuf, &Node> {
        let mut paths = BTreeMap::new();
        let mut waiting = vec![(PathBuf::new(), TOP)];
        while let Some((path, ino)) = waiting.pop() {
            for (name, child) in self.names(ino).into_iter().flatten() {
                waiting.push((path.join(std::ffi::OsStr::from_bytes(name)), *child));
            }
            paths.insert(path, &self.nodes[ino]);
        }
        paths
    }

    /// Equal for disks on which the same is to be seen.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (path, node) in self.paths() {
            path.hash(&mut hasher);
            node.mode.hash(&mut hasher);
            match &node.what {
                What::Folder(_) => 0.hash(&mut hasher),
                What::File(content) => content.hash(&mut hasher),
                What::Link(target) => target.hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// Makes everything below a folder as it is here. What `is_left_out` stays.
    pub(super) fn write_out(
        &self,
        top: &Path,
        is_left_out: &dyn Fn(&Path) -> bool,
    ) -> io::Result<()> {
        wipe(top, top, is_left_out)?;
        let paths = self.paths();
        for (path, node) in &paths {
            let place = top.join(path);
            match &node.what {
                What::Folder(_) => fs::create_dir_all(&place)?,
                What::Link(target) => symlink(std::ffi::OsStr::from_bytes(target), &place)?,
                What::File(content) => {
                    fs::write(&place, content.as_slice())?;
                    fs::set_permissions(&place, fs::Permissions::from_mode(node.mode))?;
                }
            }
        }
        // From the inside out: a folder may be about to lose the right to be written in.
        for (path, node) in
            paths.iter().rev().filter(|(_, node)| matches!(node.what, What::Folder(_)))
        {
            fs::set_permissions(top.join(path), fs::Permissions::from_mode(node.mode))?;
        }
        Ok(())
    }
}

fn wipe(folder: &Path, top: &Path, is_left_out: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let below = path.strip_prefix(top).unwrap_or(&path);
        if is_left_out(below) {
            continue;
        }
        if fs::symlink_metadata(&path)?.is_dir() {
            wipe(&path, top, is_left_out)?;
            // One that holds what is left out stays.
            match fs::remove_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                    return Err(error);
                }
                _ => {}
            }
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
