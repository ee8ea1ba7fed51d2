//! Passwords handed to functions by their place: `auth=("user", "password")`, `BasicAuth("user", "password")`,
//! `smtp.login("user", "password")`.

use std::ops::Range;

use super::LONG;
use super::assigned::{is_placeholder, quote_at, quoted_end};

/// How a call begins, and how many arguments stand before the password.
pub(super) const CALLS: [(&str, usize); 24] = [
    ("auth=(", 1),
    ("auth = (", 1),
    ("auth: (", 1),
    ("auth=[", 1),
    ("auth: [", 1),
    ("auth' => [", 1),
    ("auth\" => [", 1),
    ("auth': (", 1),
    ("auth\": (", 1),
    ("BasicAuth(", 1),
    ("basicAuth(", 1),
    ("basic_auth(", 1),
    ("NetworkCredential(", 1),
    ("PasswordCredentials(", 1),
    ("PasswordAuthentication(", 1),
    ("PasswordCredential(", 1),
    (".login(", 1),
    (".auth(", 1),
    ("ftp_login(", 2),
    ("mysqli_connect(", 2),
    ("mysql_connect(", 2),
    ("mysqli(", 2),
    ("getConnection(", 2),
    ("PDO(", 2),
];

/// Shorter passwords are examples.
const LEAST: usize = 4;

/// The password among the arguments that start here, if it is written out.
pub(super) fn password(text: &str, start: usize, n_before: usize) -> Option<Range<usize>> {
    let mut at = start;
    for _ in 0..n_before {
        at = end_of_argument(text, at)? + 1;
    }
    let (start, quote) = literal_at(text, at)?;
    let value = start..quoted_end(text, start, quote);
    let secret = &text[value.clone()];
    (secret.chars().count() >= LEAST && !is_placeholder(secret)).then_some(value)
}

/// Where an argument ends: at a comma or a bracket that is not inside of it.
fn end_of_argument(text: &str, start: usize) -> Option<usize> {
    let mut at = start;
    let mut depth = 0_usize;
    let limit = text.len().min(start + LONG);
    while at < limit {
        let quote = quote_at(text, at);
        if !quote.is_empty() {
            let end = quoted_end(text, at + quote.len(), quote);
            at = end + quote_at(text, end).len();
            continue;
        }
        match text.as_bytes()[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The string literal at a place, after blanks, a name (`password=`) and wrappers such as `Some(`.
fn literal_at(text: &str, at: usize) -> Option<(usize, &str)> {
    const MOST: usize = 40;
    let is_skipped = |byte: u8| byte.is_ascii_alphanumeric() || b" \t\r\n_=:(@".contains(&byte);
    let n = text.as_bytes()[at..].iter().take(MOST).take_while(|byte| is_skipped(**byte)).count();
    let quote = quote_at(text, at + n);
    (!quote.is_empty()).then(|| (at + n + quote.len(), quote))
}
