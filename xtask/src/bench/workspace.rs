//! A workspace like those people have, always the same: most files a few kilobytes of text, a few
//! large, one in fifty incompressible.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Result;

pub(super) struct Workspace {
    root: PathBuf,
    files: Vec<PathBuf>,
    random: Random,
}

/// What was made.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) n_files: usize,
    pub(super) n_folders: usize,
    pub(super) bytes: u64,
}

const WORDS: &[&str] = &[
    "let",
    "fn",
    "match",
    "return",
    "error",
    "session",
    "checkpoint",
    "value",
    "store",
    "index",
    "read",
    "write",
    "open",
    "close",
    "path",
    "event",
    "state",
    "task",
    "phase",
    "token",
    "agent",
    "prompt",
    "result",
    "option",
    "string",
    "vector",
    "hash",
    "tree",
    "blob",
    "chunk",
    "query",
    "cursor",
    "buffer",
    "stream",
    "async",
    "await",
    "retry",
    "limit",
    "config",
    "default",
    "parse",
    "render",
    "merge",
    "split",
    "commit",
    "branch",
    "worktree",
    "handle",
    "lock",
    "flush",
    "sync",
];
const ENDINGS: &[&str] = &["rs", "py", "ts", "tsx", "go", "md", "json", "toml", "css", "sh"];

impl Workspace {
    pub(super) fn make(root: &Path, n_files: usize) -> Result<Made> {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut bytes = 0;
        let mut folders = std::collections::BTreeSet::new();
        for n in 0..n_files {
            let depth = 1 + random.depth();
            let folder = (0..depth).map(|_| format!("{}{}", random.pick(WORDS), random.below(12)));
            let folder = folder.collect::<Vec<_>>().join("/");
            fs::create_dir_all(root.join(&folder))?;
            let size = random.size();
            let (name, contents) = match random.below(50) {
                0 => (format!("asset{n}.bin"), random.noise(size * 4)),
                _ => (
                    format!("{}_{n}.{}", random.pick(WORDS), random.pick(ENDINGS)),
                    random.text(size),
                ),
            };
            bytes += contents.len() as u64;
            fs::write(root.join(&folder).join(name), contents)?;
            folders.insert(folder);
        }
        fs::write(root.join(".gitignore"), "node_modules/\ntarget/\n.env\n")?;
        let n_folders = folders
            .iter()
            .flat_map(|folder| parents(folder))
            .collect::<std::collections::BTreeSet<_>>()
            .len();
        Ok(Made { n_files: n_files + 1, n_folders, bytes })
    }

    pub(super) fn copy(source: &Path, root: &Path) -> Result<Self> {
        let files = list(source)?;
        for file in &files {
            let to = root.join(file);
            fs::create_dir_all(to.parent().unwrap_or(root))?;
            fs::copy(source.join(file), to)?;
        }
        Ok(Self { root: root.to_owned(), files, random: Random(11) })
    }

    /// Appends a line to some files, removes one and adds one. The same for every peer.
    pub(super) fn edit(&mut self, n_files: usize, round: usize) -> Result<()> {
        self.files = list(&self.root)?;
        self.files.retain(|file| !file.starts_with(".gitignore"));
        for _ in 0..n_files {
            let file = self.files[self.random.below(self.files.len())].clone();
            let mut file = fs::File::options().append(true).open(self.root.join(file))?;
            file.write_all(format!("\nedited in round {round}\n").as_bytes())?;
        }
        let gone = self.random.below(self.files.len());
        fs::remove_file(self.root.join(self.files.swap_remove(gone)))?;
        fs::write(
            self.root.join(format!("added_{round}.txt")),
            format!("added in {round}\n").repeat(40),
        )?;
        Ok(())
    }

    /// Stands for every path and every byte.
    pub(super) fn fingerprint(&self) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        for file in list(&self.root)? {
            fs::read(self.root.join(&file))?.hash(&mut hasher);
            file.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }
}

/// All files below a folder, sorted, without git's own.
fn list(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true if entry.file_name() != ".git" => waiting.push(entry.path()),
                true => {}
                false => files.push(entry.path().strip_prefix(root)?.to_owned()),
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn parents(folder: &str) -> impl Iterator<Item = &str> {
    folder.match_indices('/').map(|(slash, _)| &folder[..slash]).chain([folder])
}

/// Good enough for sizes and words, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn depth(&mut self) -> usize {
        ((-(1.0 - self.unit()).ln() / 0.5) as usize).min(6)
    }

    /// Around 3 KB, with a long tail.
    fn size(&mut self) -> usize {
        let normal =
            (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
        ((8.1 + 1.2 * normal).exp() as usize).clamp(40, 2_000_000)
    }

    fn noise(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()).flatten().take(length).collect()
    }

    fn text(&mut self, length: usize) -> Vec<u8> {
        let mut text = String::with_capacity(length + 80);
        while text.len() < length {
            text.push_str(&"    ".repeat(self.below(4)));
            for _ in 0..2 + self.below(9) {
                text.push_str(self.pick(WORDS));
                text.push(' ');
            }
            if self.below(10) < 3 {
                text.push_str(&["= ", &self.below(1 << 30).to_string(), ";"].concat());
            }
            text.push('\n');
        }
        text.truncate(length);
        text.into_bytes()
    }
}
