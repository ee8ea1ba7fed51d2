//! Secrets, blotted out of whatever is shown, briefed or sent. The store itself keeps raw bytes.
//!
//! Three kinds are known: tokens with a provider's own shape, private keys, and values assigned to a
//! name that says what they are. One pass over the words, so the time is linear.

const BLOT: &str = "[redacted]";

/// Tokens start like this and go on for at least so many letters.
const SHAPES: [(&str, usize); 22] = [
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk-", 20),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xoxa-", 20),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 30),
    ("SG.", 30),
    ("eyJ", 40),
];

/// A name with one of these in it is followed by a secret.
const TELLING: [&str; 9] = [
    "secret",
    "token",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "api-key",
    "private_key",
    "credential",
];

/// Knows what to blot out.
#[derive(Clone, Debug, Default)]
pub struct Redactor;

impl Redactor {
    pub fn knowing(_values: impl IntoIterator<Item = String>) -> Self {
        Self
    }
    pub fn redact(&self, text: &str) -> String {
        redact(text)
    }
}

/// The same text without secrets.
pub fn redact(text: &str) -> String {
    let text = without_keys(text);
    let mut safe = String::with_capacity(text.len());
    let mut rest = text.as_str();
    // Whether the word before ended in `password=` or the like.
    let mut is_secret_next = false;
    while !rest.is_empty() {
        let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        if length == 0 {
            let gap = rest.find(is_word).unwrap_or(rest.len());
            let between = &rest[..gap];
            is_secret_next = is_secret_next && is_assignment(between);
            safe.push_str(between);
            rest = &rest[gap..];
            continue;
        }
        let word = &rest[..length];
        match is_secret_next && word.len() >= 6 || has_shape(word) {
            true => safe.push_str(BLOT),
            false => safe.push_str(word),
        }
        is_secret_next = is_telling(word);
        rest = &rest[length..];
    }
    safe
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '/' | '~' | '%')
}

/// What stands between a name and its value: `=`, `: `, `":"` and the like.
fn is_assignment(between: &str) -> bool {
    let between = between.trim_matches(['"', '\'', ' ', '\\']);
    matches!(between, "=" | ":" | "=>" | ":=")
}

pub fn is_telling(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    TELLING.iter().any(|name| lower.contains(name))
}

fn has_shape(word: &str) -> bool {
    // A path may end in a token, as in a URL.
    word.split('/').any(|part| {
        SHAPES.iter().any(|(start, least)| {
            part.strip_prefix(start)
                .is_some_and(|rest| rest.len() >= *least && !rest.contains('.') || rest.len() >= 40)
        })
    })
}

/// Private keys go as a whole.
fn without_keys(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        let is_private =
            rest[start..].lines().next().is_some_and(|line| line.contains("PRIVATE KEY"));
        let end = rest[start..].find(END).map_or(rest.len(), |end| {
            let after = start + end;
            rest[after + END.len()..]
                .find("-----")
                .map_or(rest.len(), |tail| after + END.len() + tail + 5)
        });
        safe.push_str(&rest[..start]);
        safe.push_str(if is_private { BLOT } else { &rest[start..end] });
        rest = &rest[end..];
    }
    safe.push_str(rest);
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_all_else_stays() {
        let check = |text: &str, expected: &str| assert_eq!(redact(text), expected);
        check("nothing to hide", "nothing to hide");
        check("export API_KEY=abcdef123456", "export API_KEY=[redacted]");
        check(r#"{"password": "hunter22"}"#, r#"{"password": "[redacted]"}"#);
        check("use ghp_abcdefghijklmnopqrstuvwxyz0123456789 now", "use [redacted] now");
        check("curl https://x/AKIAIOSFODNN7EXAMPLE1", "curl https:[redacted]");
        check("the token is missing", "the token is missing");
        check("fix the token refresh in src/token.rs", "fix the token refresh in src/token.rs");
        check(
            "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        );
        check("id 01a1e094-7d11-7b43-8405-f076b5f4de90", "id 01a1e094-7d11-7b43-8405-f076b5f4de90");
        check(
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[redacted]\nb",
        );
        check(
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        );
    }
}
