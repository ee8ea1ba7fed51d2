//! An agent's own record of what was said, as far as a checkpoint speaks of it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::agent::AgentKind;
use crate::id::ObjectId;
use crate::redact;

/// The agent's own id of a conversation. It becomes part of file names, so it is one plain word. An agent can choose one
/// that looks like a key; what is shared then has the mark of the redactor in its place, and is an id still.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NativeId(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a conversation")]
pub struct BadNativeId(String);

impl NativeId {
    const MAX_LEN: usize = 128;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NativeId {
    type Err = BadNativeId;

    fn from_str(text: &str) -> Result<Self, BadNativeId> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for NativeId {
    type Error = BadNativeId;

    fn try_from(text: String) -> Result<Self, BadNativeId> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let plain = text.replace(redact::BLOT, "");
        let is_short = plain.len() <= Self::MAX_LEN && text.len() <= 2 * Self::MAX_LEN;
        match !text.is_empty() && is_short && plain.bytes().all(is_plain) {
            true => Ok(Self(text)),
            false => Err(BadNativeId(crate::text::printable(&text))),
        }
    }
}

impl From<NativeId> for String {
    fn from(id: NativeId) -> Self {
        id.0
    }
}

impl fmt::Display for NativeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Tokens as providers bill them. `input` is what was neither read from a cache nor written to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Tokens {
    pub const fn total(&self) -> u64 {
        let read = self.input.saturating_add(self.cache_read);
        read.saturating_add(self.output).saturating_add(self.cache_write)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// What a conversation has used up to some point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompts of the person.
    pub n_turns: u64,
    pub by_model: BTreeMap<String, Tokens>,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.by_model.values().map(Tokens::total).fold(0, u64::saturating_add)
    }
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// What models cost. A name in the table also stands for its dated releases (`name-20260101`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    fn of(&self, model: &str) -> Option<&Price> {
        let dated = |name: &str| {
            let rest = model.strip_prefix(name)?.strip_prefix(['-', '@'])?;
            rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-').then_some(())
        };
        self.0.get(model).or_else(|| {
            self.0.iter().find(|(name, _)| dated(name).is_some()).map(|(_, price)| price)
        })
    }

    /// The cost in dollars, if the table knows every model that was used.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        if usage.by_model.is_empty() {
            return None;
        }
        let each = usage.by_model.iter().map(|(model, tokens)| {
            let price = self.of(model)?;
            let sum = tokens.input as f64 * price.input
                + tokens.output as f64 * price.output
                + tokens.cache_read as f64 * price.cache_read
                + tokens.cache_write as f64 * price.cache_write;
            Some(sum / 1_000_000.0)
        });
        each.sum()
    }
}

/// What a checkpoint says about the conversation it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationSummary {
    pub agent: AgentKind,
    pub id: NativeId,
    /// A stored tree: the agent's files, and `conversation.json` about them.
    pub tree: ObjectId,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_can_be_a_file_name_and_nothing_worse() {
        assert!("01a1e094-7d11-7b43-8405-f076b5f4de90".parse::<NativeId>().is_ok());
        assert!("ses_e1f631fafffe60681Jz9M7941q".parse::<NativeId>().is_ok());
        assert!("run-[redacted]".parse::<NativeId>().is_ok());
        for bad in ["", "../x", "[a]", "a/b", "a.b", "a b", "a\0b", "ä", &"x".repeat(129)] {
            assert!(bad.parse::<NativeId>().is_err(), "{bad:?}");
            let json = serde_json::to_string(bad).unwrap();
            assert!(serde_json::from_str::<NativeId>(&json).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_cost_is_known_only_if_every_model_is() {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let prices = Prices([("claude-sonnet-4-5".to_owned(), price)].into());
        let tokens =
            Tokens { input: 1_000_000, output: 100_000, cache_read: 1_000_000, cache_write: 0 };
        let usage = |models: &[&str]| Usage {
            n_turns: 1,
            by_model: models.iter().map(|model| ((*model).to_owned(), tokens)).collect(),
        };
        assert_eq!(prices.cost(&usage(&["claude-sonnet-4-5"])), Some(4.8));
        assert_eq!(prices.cost(&usage(&["claude-sonnet-4-5-20250929"])), Some(4.8));
        assert_eq!(prices.cost(&usage(&["claude-sonnet-4-50"])), None);
        assert_eq!(prices.cost(&usage(&["claude-sonnet-4-5", "other"])), None);
        assert_eq!(prices.cost(&usage(&[])), None);
    }
}
