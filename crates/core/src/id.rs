//! Identities. A UUID (v7) names a thing for ever and on every machine; a handle (`task-…`, `cp-…`)
//! names it in one store and is what people type; an [`ObjectId`] is the hash of stored bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            pub const fn uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Uuid::parse_str(text).map(Self).map_err(|_| BadId(text.to_owned()))
            }
        }
    };
}

uuid_id!(
    /// One piece of work in a workspace.
    SessionId
);
uuid_id!(
    /// One moment of a session.
    CheckpointId
);
uuid_id!(
    /// One change we made to the workspace, such as a rollback.
    OperationId
);
uuid_id!(
    /// One fact in the journal.
    EventId
);
uuid_id!(
    /// One file of stored objects.
    PackId
);

impl EventId {
    /// The same word in the same session is always the same event.
    pub fn of_key(session: SessionId, key: &str, place: usize) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(session.uuid().as_bytes())
            .update(&place.to_le_bytes())
            .update(key.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an id")]
pub struct BadId(String);

/// Letters and digits that cannot be mistaken for one another.
const HANDLE_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// `task-` and eight characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionHandle(String);

impl SessionHandle {
    /// The handle that belongs to an id: its last 40 bits, which are random in a v7 UUID.
    pub fn of(id: SessionId) -> Self {
        let tail = id.0.as_u128();
        let letters = (0..8).rev().map(|place| {
            let five_bits = (tail >> (5 * place)) & 31;
            char::from(HANDLE_ALPHABET[five_bits as usize])
        });
        Self(format!("task-{}", letters.collect::<String>()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for SessionHandle {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// `cp-YYYYMMDD-NNN`: the day (where the person is) and a number within the store and day.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointHandle(String);

impl CheckpointHandle {
    pub fn new(day: jiff::civil::Date, number: u32) -> Self {
        Self(format!("{}{number:03}", Self::day_prefix(day)))
    }

    /// What all handles of one day start with.
    pub fn day_prefix(day: jiff::civil::Date) -> String {
        format!("cp-{:04}{:02}{:02}-", day.year(), day.month(), day.day())
    }

    /// The number within the day, if this has the usual form.
    pub fn number(&self) -> Option<u32> {
        self.0.rsplit('-').next()?.parse().ok()
    }

    /// `cp-YYYYMMDD-`: this handle without its number.
    pub fn prefix(&self) -> &str {
        let end = self.0.rfind('-').map_or(self.0.len(), |dash| dash + 1);
        &self.0[..end]
    }

    /// The same day with another number.
    pub fn renumbered(&self, number: u32) -> Self {
        Self(format!("{}{number:03}", self.prefix()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for CheckpointHandle {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for CheckpointHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The BLAKE3 hash of an object's bytes: its address in the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 32]);

impl ObjectId {
    pub const LEN: usize = 32;

    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// `None` unless there are exactly 32 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

impl FromStr for ObjectId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        blake3::Hash::from_hex(text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| BadId(text.to_owned()))
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_handle_is_the_random_tail_of_its_id() {
        let id: SessionId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        assert_eq!(SessionHandle::of(id).as_str(), "task-084sn02q");
        assert_eq!(SessionHandle::of(id).as_str().len(), "task-abc12345".len());
    }

    #[test]
    fn a_checkpoint_handle_counts_past_999() {
        let day = jiff::civil::date(2026, 1, 21);
        let handle = CheckpointHandle::new(day, 2);
        assert_eq!(handle.as_str(), "cp-20260121-002");
        assert_eq!(handle.prefix(), "cp-20260121-");
        assert_eq!(handle.number(), Some(2));
        assert_eq!(handle.renumbered(1000).as_str(), "cp-20260121-1000");
    }

    #[test]
    fn an_object_id_survives_its_text_form() {
        let id = ObjectId::of(b"bivouac");
        assert_eq!(id.to_string().parse::<ObjectId>().unwrap(), id);
        assert!("xyz".parse::<ObjectId>().is_err());
        assert_eq!(ObjectId::from_slice(&[0; 31]), None);
    }
}
