//! Values that are known to be secret, found as they are and in the forms they travel in: escaped in
//! JSON, percent-encoded in a URL, and anywhere inside a base64 text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, MatchKind};

use super::assigned::is_example;
use super::{BLOT, Spot};

/// Shorter ones appear by chance.
const LEAST: usize = 8;

#[derive(Clone)]
pub(super) struct Known {
    forms: AhoCorasick,
}

impl Known {
    /// `None` if no value is worth looking for.
    pub(super) fn of(
        values: impl IntoIterator<Item = String>,
        secrets: impl IntoIterator<Item = String>,
    ) -> Option<Self> {
        let mut forms = BTreeSet::new();
        for value in values {
            let value = value.trim();
            let inner = super::urls::password_in_url(value).unwrap_or_default();
            for value in [value, inner].into_iter().filter(|value| is_taken(value)) {
                forms.extend(forms_of(value));
            }
        }
        for secret in secrets {
            let secret = secret.trim();
            // The password of a URL is what travels; a value to be filled in is nobody's secret.
            let inner = super::urls::password_in_url(secret).filter(|it| is_long(it));
            forms.extend(inner.iter().flat_map(|it| forms_of(it)));
            if is_long(secret) && !is_path(secret) && !is_example(secret) {
                forms.extend(forms_of(secret));
            }
        }
        if forms.is_empty() {
            return None;
        }
        let forms = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms)
            .expect("there are not two thousand million bytes of secrets");
        Some(Self { forms })
    }

    pub(super) fn spots(&self, text: &str) -> Vec<Spot<'_>> {
        self.forms.find_iter(text).map(|found| Spot::at(found.range())).collect()
    }
}

/// Whether a value is long and odd enough that finding it means something.
fn is_taken(value: &str) -> bool {
    let has_credentials = super::urls::password_in_url(value).is_some();
    is_long(value)
        && (has_credentials || !is_plain(value) && !is_path(value) && !value.contains("://"))
}

fn is_long(value: &str) -> bool {
    value.len() >= LEAST && !value.contains(BLOT) && !BLOT.contains(value)
}

/// Words and numbers with the usual signs between them: `us-east-1`, `localhost:5432`, `12.5`.
fn is_plain(value: &str) -> bool {
    const LONGEST_WORD: usize = 24;
    let is_sign = |letter: char| " -_./:,@+\\".contains(letter);
    value.split(is_sign).all(|piece| {
        let is_number = piece.bytes().all(|byte| byte.is_ascii_digit());
        let rest = piece.strip_prefix(|letter: char| letter.is_uppercase()).unwrap_or(piece);
        let is_word = piece.chars().all(|letter| letter.is_alphabetic() && !letter.is_lowercase())
            || rest.chars().all(|letter| letter.is_alphabetic() && !letter.is_uppercase());
        is_number || is_word && piece.len() <= LONGEST_WORD
    })
}

/// A base64 text may start with a slash too, but then it has a long piece with digits in it.
pub(super) fn is_path(value: &str) -> bool {
    const LONGEST: usize = 20;
    let is_odd = |piece: &str| {
        piece.len() >= LONGEST
            && piece.bytes().any(|byte| byte.is_ascii_digit())
            && piece.bytes().any(|byte| byte.is_ascii_uppercase())
            || piece.contains(['=', '+', '!', '$'])
    };
    ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start))
        && !value.split('/').any(is_odd)
}

fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned(), html_escaped(value)];
    let quoted = serde_json::Value::from(value).to_string();
    let escaped = &quoted[1..quoted.len() - 1];
    forms.push(escaped.to_owned());
    forms.push(escaped.replace('/', "\\/"));
    forms.extend([Hex::Lower, Hex::Upper].map(|hex| ascii_escaped(escaped, hex)));
    let latin = latin_1(value);
    for bytes in [Some(value.as_bytes()), latin.as_deref()].into_iter().flatten() {
        for kept in ["-._~", "-._~!'()*", "-._~/:@"] {
            let upper = percent_encoded(bytes, kept);
            let lower = lower_hex(&upper);
            // As in a form, where a blank is a plus; and encoded twice, as a URL inside of another.
            forms.extend([&upper, &lower].map(|it| it.replace("%20", "+")));
            forms.extend([&upper, &lower].map(|it| it.replace('%', "%25")));
            forms.extend([upper, lower]);
        }
    }
    // As PowerShell encodes its commands.
    let wide: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [Some(value.as_bytes()), latin.as_deref(), Some(&wide)].into_iter().flatten() {
        for lead in 0..3 {
            let inner = base64_inside(bytes, lead);
            forms.push(inner.replace('+', "-").replace('/', "_"));
            forms.push(inner);
        }
    }
    forms
}

/// The bytes of an older encoding, where they differ.
fn latin_1(value: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = value.chars().map(|it| u8::try_from(u32::from(it)).ok()).collect();
    bytes.filter(|_| !value.is_ascii())
}

fn html_escaped(value: &str) -> String {
    let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

#[derive(Clone, Copy)]
enum Hex {
    Lower,
    Upper,
}

/// As encoders write it that trust neither other alphabets nor `<`, `>` and `&`.
fn ascii_escaped(escaped: &str, hex: Hex) -> String {
    let mut safe = String::with_capacity(escaped.len());
    for letter in escaped.chars() {
        if letter.is_ascii() && !matches!(letter, '<' | '>' | '&') {
            safe.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let digits = match hex {
                Hex::Lower => format!("{unit:04x}"),
                Hex::Upper => format!("{unit:04X}"),
            };
            safe.push_str("\\u");
            safe.push_str(&digits);
        }
    }
    safe
}

fn percent_encoded(value: &[u8], kept: &str) -> String {
    let mut encoded = String::with_capacity(value.len() * 3);
    for byte in value.iter().copied() {
        match byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => write!(encoded, "%{byte:02X}").expect("a string takes everything"),
        }
    }
    encoded
}

/// `%2F` as `%2f`; all else as it is.
fn lower_hex(encoded: &str) -> String {
    let mut lower = String::with_capacity(encoded.len());
    for (n, piece) in encoded.split('%').enumerate() {
        if n > 0 {
            let (hex, rest) = piece.split_at(2);
            lower.push('%');
            lower.push_str(&hex.to_ascii_lowercase());
            lower.push_str(rest);
        } else {
            lower.push_str(piece);
        }
    }
    lower
}

/// The base64 letters that depend on these bytes alone when `lead` others stand before them.
fn base64_inside(bytes: &[u8], lead: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let all = [&[0; 2][..lead], bytes].concat();
    let bits = |n: usize| {
        let pair = u16::from(all[n * 6 / 8]) << 8
            | u16::from(all.get(n * 6 / 8 + 1).copied().unwrap_or_default());
        usize::from(pair >> (10 - n * 6 % 8)) & 63
    };
    let range = (lead * 8).div_ceil(6)..all.len() * 8 / 6;
    range.map(|n| char::from(LETTERS[bits(n)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_values_are_not_taken() {
        let check = |value: &str, expected| assert_eq!(is_taken(value), expected, "{value}");
        check("hunter2", false);
        check("hunter22", true);
        check("production", false);
        check("us-east-1", false);
        check("localhost:5432", false);
        check("1234567890", false);
        check("2026-01-21", false);
        check("/run/secrets/db2", false);
        check("https://example.org/a1", false);
        check("postgres://app:s3cr3t@db/x", true);
        check("My Application", false);
        check("P@ssw0rd!", true);
        check("wJalr/K7MDENG+bPxRfiCYx1", true);
        check("correct-horse", false);
        check("redacted", false);
    }

    #[test]
    fn base64_is_found_at_every_alignment() {
        assert_eq!(base64_inside(b"hunter22", 0), "aHVudGVyMj");
        // "a:hunter22" is YTpodW50ZXIyMg, "ab:hunter22" is YWI6aHVudGVyMjI.
        assert!("YTpodW50ZXIyMg".contains(&base64_inside(b"hunter22", 2)));
        assert!("YWI6aHVudGVyMjI".contains(&base64_inside(b"hunter22", 0)));
        // "x" before it: eGh1bnRlcjIy
        assert!("eGh1bnRlcjIy".contains(&base64_inside(b"hunter22", 1)));
    }
}
