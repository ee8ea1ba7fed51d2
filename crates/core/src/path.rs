//! Paths inside a workspace, and the workspace's own. Names are bytes: whatever the file system
//! allows survives a round trip, valid UTF-8 or not.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::text;

/// A path inside the workspace: relative, `/`-separated, never escaping the root.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Vec<u8>);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path inside the workspace")]
pub struct BadRelPath(String);

impl RelPath {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, BadRelPath> {
        let bytes = bytes.into();
        if bytes.split(|byte| *byte == b'/').all(is_name) {
            return Ok(Self(bytes));
        }
        Err(BadRelPath(text::printable_bytes(&bytes)))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn join(&self, name: &[u8]) -> Result<Self, BadRelPath> {
        let mut bytes = self.0.clone();
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        Self::new(bytes)
    }

    /// The folder this is in, or `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0[..slash].to_vec()))
    }

    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|byte| *byte == b'/').next().unwrap_or(&self.0)
    }

    pub fn depth(&self) -> usize {
        self.0.iter().filter(|byte| **byte == b'/').count()
    }

    /// Is this `other`, or somewhere below it?
    pub fn is_within(&self, other: &Self) -> bool {
        match self.0.strip_prefix(other.0.as_slice()) {
            Some(rest) => rest.is_empty() || rest[0] == b'/',
            None => false,
        }
    }
}

/// Can this be one component of a path?
pub fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && !name.contains(&b'/')
}

impl FromStr for RelPath {
    type Err = BadRelPath;

    fn from_str(text: &str) -> Result<Self, BadRelPath> {
        Self::new(text)
    }
}

/// For people: escaped where it could confuse a terminal.
impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text::printable_bytes(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelPath({self})")
    }
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(PathBytes::deserialize(deserializer)?.0).map_err(de::Error::custom)
    }
}

/// The absolute path of a workspace.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WorkspacePath(Vec<u8>);

impl WorkspacePath {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A name for files that belong to this workspace: short, safe and always the same.
    pub fn key(&self) -> String {
        let hash = blake3::hash(&self.0);
        hash.to_hex()[..16].to_owned()
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text::printable_bytes(&self.0))
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkspacePath({self})")
    }
}

impl Serialize for WorkspacePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PathBytes::deserialize(deserializer).map(|bytes| Self(bytes.0))
    }
}

/// Any path as JSON carries it, in stored events and in what commands print: a string where its bytes are
/// UTF-8, otherwise an array of the bytes. Nothing is lost, and a reader can tell the two apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathBytes(Vec<u8>);

impl PathBytes {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WirePath {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for PathBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for PathBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match WirePath::deserialize(deserializer)? {
            WirePath::Text(text) => text.into_bytes(),
            WirePath::Bytes(bytes) => bytes,
        }))
    }
}

fn serialize<S: Serializer>(path: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(path) {
        Ok(text) => serializer.serialize_str(text),
        Err(_) => serializer.collect_seq(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_never_leaves_the_workspace() {
        let check = |path: &[u8], good: bool| {
            assert_eq!(RelPath::new(path).is_ok(), good, "{}", path.escape_ascii());
        };
        check(b"src/main.rs", true);
        check(b"a", true);
        check(b"...", true);
        check(b"caf\xe9", true);
        check(b"", false);
        check(b"/etc/passwd", false);
        check(b"a//b", false);
        check(b"a/", false);
        check(b"..", false);
        check(b"a/../b", false);
        check(b"./a", false);
        check(b"a\0b", false);
    }

    #[test]
    fn within_means_the_folder_not_the_letters() {
        let check = |path: &str, folder: &str, within: bool| {
            let (path, folder): (RelPath, RelPath) =
                (path.parse().unwrap(), folder.parse().unwrap());
            assert_eq!(path.is_within(&folder), within, "{path} in {folder}");
        };
        check("src/main.rs", "src", true);
        check("src", "src", true);
        check("src2/main.rs", "src", false);
        check("src", "src/main.rs", false);
    }

    #[test]
    fn names_that_are_not_text_survive_json() {
        for bytes in [b"plain".as_slice(), b"caf\xe9"] {
            let path = RelPath::new(bytes).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<RelPath>(&json).unwrap(), path);
        }
        assert!(serde_json::from_str::<RelPath>("\"../x\"").is_err());
    }
}
