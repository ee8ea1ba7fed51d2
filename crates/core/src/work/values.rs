//! What some things hold: the outputs and checks of a step, the options of a fork point, how a worktree stands.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::status::Verdict;
use crate::text::Note;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorktreeStatus {
    Active,
    Merged,
    Removed,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no status of a worktree; one is active, merged or removed")]
pub struct BadWorktreeStatus(String);

impl WorktreeStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Merged => "merged",
            Self::Removed => "removed",
        }
    }
}

impl FromStr for WorktreeStatus {
    type Err = BadWorktreeStatus;

    fn from_str(text: &str) -> Result<Self, BadWorktreeStatus> {
        match text.to_lowercase().as_str() {
            "active" | "open" => Ok(Self::Active),
            "merged" => Ok(Self::Merged),
            "removed" | "deleted" | "gone" => Ok(Self::Removed),
            _ => Err(BadWorktreeStatus(text.to_owned())),
        }
    }
}

/// What a step left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// `Created`, `Modified` or any other word; none when only the path is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Note>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadText {
    #[error("an output needs a path, as in `created src/a.rs: the parser`")]
    Output,
    #[error("a check is written as `lint=pass`, not `{0}`")]
    Check(String),
    #[error("an option is written as `A: what it is`, not `{0}`")]
    Option(String),
}

impl FromStr for Output {
    type Err = BadText;

    /// Reads ``Created `path` — description``, `created path: description` or a path alone.
    fn from_str(text: &str) -> Result<Self, BadText> {
        const VERBS: [&str; 8] =
            ["created", "modified", "added", "changed", "deleted", "removed", "renamed", "updated"];
        let text = text.trim();
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let is_verb = !rest.is_empty() && VERBS.contains(&first.to_lowercase().as_str());
        let (what, rest) =
            if is_verb { (Some(capitalised(first)), rest.trim_start()) } else { (None, text) };
        let (path, about) = match rest.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            Some((path, about)) => (path, about),
            None => {
                let end = [": ", " — ", " - "].iter().filter_map(|mark| rest.find(mark)).min();
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        let about = about.trim_start_matches([':', '—', '-', ' ']).trim();
        let about = (!about.is_empty()).then(|| Note::cut(about));
        match path.trim() {
            "" => Err(BadText::Output),
            path => Ok(Self { what, path: path.to_owned(), about }),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(what) = &self.what {
            write!(f, "{what} ")?;
        }
        write!(f, "`{}`", self.path)?;
        match &self.about {
            Some(about) => write!(f, " — {}", about.headline()),
            None => Ok(()),
        }
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    first + &letters.as_str().to_lowercase()
}

/// What a step's own check said: `Lint ✅`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
}

impl FromStr for Check {
    type Err = BadText;

    /// Reads `lint=pass` or `Lint ✅`.
    fn from_str(text: &str) -> Result<Self, BadText> {
        let bad = || BadText::Check(text.to_owned());
        let text = text.trim();
        let (name, verdict) =
            text.split_once('=').or_else(|| text.rsplit_once(' ')).ok_or_else(bad)?;
        let verdict = verdict.parse().map_err(|_| bad())?;
        match name.trim() {
            "" => Err(bad()),
            name => Ok(Self { name: name.to_owned(), verdict }),
        }
    }
}

/// One way forward.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOption {
    pub letter: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pros: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cons: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl FromStr for ForkOption {
    type Err = BadText;

    /// Reads `A: Server-side approach`.
    fn from_str(text: &str) -> Result<Self, BadText> {
        let bad = || BadText::Option(text.to_owned());
        let (letter, title) = text.split_once(':').ok_or_else(bad)?;
        let letter = letter.trim();
        let letter = letter.strip_prefix("Option ").unwrap_or(letter);
        match (letter, title.trim()) {
            ("", _) | (_, "") => Err(bad()),
            (letter, title) => {
                Ok(Self { letter: letter.to_owned(), title: title.to_owned(), ..Self::default() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_as_people_write_them() {
        let check = |text: &str, what: Option<&str>, path: &str, about: Option<&str>| {
            let found: Output = text.parse().unwrap();
            assert_eq!(found.what.as_deref(), what, "{text}");
            assert_eq!(found.path, path, "{text}");
            assert_eq!(found.about.as_ref().map(Note::as_str), about, "{text}");
            assert_eq!(found.to_string().parse::<Output>().unwrap(), found);
        };
        check("Created `src/a.rs` — the parser", Some("Created"), "src/a.rs", Some("the parser"));
        check("modified src/b.rs: faster", Some("Modified"), "src/b.rs", Some("faster"));
        check("src/c.rs", None, "src/c.rs", None);
        check("my file.md", None, "my file.md", None);
        assert_eq!("".parse::<Output>(), Err(BadText::Output));
    }

    #[test]
    fn checks_and_options_are_read() {
        let check: Check = "lint=pass".parse().unwrap();
        assert_eq!(check, "lint ✅".parse().unwrap());
        assert!("lint".parse::<Check>().is_err() && "lint=maybe".parse::<Check>().is_err());
        let option: ForkOption = "A: Server-side approach".parse().unwrap();
        assert_eq!((option.letter.as_str(), option.title.as_str()), ("A", "Server-side approach"));
        assert!("Server-side".parse::<ForkOption>().is_err());
    }
}
