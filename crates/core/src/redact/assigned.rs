//! Secrets that their names give away: `password = …`, `--token …`, `"apiKey": "…"`, `X-Api-Key: …`.
//!
//! A value that stands for another one (`$TOKEN`, `<token>`, `os.environ["TOKEN"]`, `string`) stays. So
//! does a plain word, unless it stands where only a value can stand: people write about tokens.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::known::is_path;
use super::names::{is_telling, words};
use super::shapes::is_login;
use super::{BLOT, LONG, Spot, markup};

/// Shorter values without quotes are not worth the doubt.
pub(super) const LEAST_BARE: usize = 6;
const LEAST_QUOTED: usize = 4;

/// Every telling name has one of these in it.
static STEMS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let stems = [
        "secret",
        "token",
        "pass",
        "pwd",
        "key",
        "credential",
        "auth",
        "cookie",
        "api key",
        "access key",
        "secret key",
        "private key",
    ];
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(stems)
        .expect("a fixed and short list")
});

/// What is assigned to telling names.
pub(super) fn spots(text: &str) -> Vec<Spot<'_>> {
    let mut spots = Vec::new();
    let mut from = 0;
    for stem in STEMS.find_iter(text) {
        if stem.start() < from {
            continue;
        }
        let name = name_around(text, stem.range(), from);
        from = name.end;
        // The user of a URL: its password is found with it.
        let is_user = text[..name.start].ends_with("//");
        let is_auth = &text[name.clone()] == "auth" && !quote_at(text, name.end).is_empty();
        if is_user || !is_auth && !is_telling(&text[name.clone()]) {
            continue;
        }
        let Some(value) = Value::after(text, &name) else {
            continue;
        };
        match value.is_secret() {
            true => {
                from = value.range.end;
                spots.push(Spot { range: value.range.clone(), quote: value.quote_of_number() });
            }
            // It is not searched for more names, or the time would not be linear.
            false if value.range.len() > LONG => from = value.range.end,
            false => {}
        }
    }
    spots
}

fn name_around(text: &str, stem: Range<usize>, from: usize) -> Range<usize> {
    let is_in = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let bytes = text.as_bytes();
    let before = bytes[from..stem.start].iter().rev().take_while(|byte| is_in(byte)).count();
    let after = bytes[stem.end..].iter().take_while(|byte| is_in(byte)).count();
    let start = stem.start - before;
    // The `n` of an escaped line end is no part of the name.
    let is_escape = before > 0 && bytes[..start].last() == Some(&b'\\');
    start + usize::from(is_escape)..stem.end + after
}

/// What stands after a name and a sign of assignment.
struct Value<'a> {
    text: &'a str,
    name: Range<usize>,
    /// What closed the name: a quote with its backslashes, or nothing.
    name_quote: &'a str,
    /// What opened the value, likewise.
    quote: &'a str,
    /// Without quotes.
    range: Range<usize>,
    sign: Sign,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `=` with nothing around it.
    Tight,
    /// `:`, ` = `, `=>` and the like.
    Loose,
    /// `--password hunter22`.
    Flag,
    /// `-storepass hunter22`.
    ShortFlag,
    /// `<password>hunter22</password>`.
    Tag,
    /// `the secret is dG9rZW4xMjM0NTY3ODkw`.
    Prose,
}

impl<'a> Value<'a> {
    fn after(text: &'a str, name: &Range<usize>) -> Option<Self> {
        let name_quote = quote_at(text, name.end);
        let at = name.end + name_quote.len();
        let (sign, mut at) = sign_after(text, name, at, name_quote)?;
        // Bytes, raw and formatted strings of Python and Rust.
        let is_prefixed = text[at..].starts_with(['b', 'r', 'f', 'u']);
        if is_prefixed && !quote_at(text, at + 1).is_empty() {
            at += 1;
        }
        let quote = quote_at(text, at);
        let start = at + quote.len();
        let start = start + scheme_length(&text[start..]);
        const CDATA: &str = "<![CDATA[";
        let is_cdata = sign == Sign::Tag && text[start..].starts_with(CDATA);
        let start = if is_cdata { start + CDATA.len() } else { start };
        let mut value =
            Self { text, name: name.clone(), name_quote, quote, range: start..start, sign };
        value.range.end = match quote {
            "" => value.bare_end(),
            _ => quoted_end(text, start, quote),
        };
        Some(value)
    }

    fn as_str(&self) -> &'a str {
        &self.text[self.range.clone()]
    }

    fn name(&self) -> &'a str {
        &self.text[self.name.clone()]
    }

    /// `PASSWORD=…`, as in a shell or an `.env` file: everything up to a blank is the value.
    fn is_environment(&self) -> bool {
        self.sign == Sign::Tight
            && self.name_quote.is_empty()
            && !self.name().bytes().any(|byte| byte.is_ascii_lowercase() || byte == b'.')
    }

    fn bare_end(&self) -> usize {
        let is_cookie = self.is_cookie();
        let is_end = |letter: char| match letter {
            '<' | '>' | ']' if self.sign == Sign::Tag => true,
            '"' | '\'' | '`' | '\\' | '\n' | '\r' => true,
            ' ' if self.sign == Sign::Tag => false,
            _ if is_cookie => false,
            _ if letter.is_whitespace() => true,
            _ if self.is_environment() => false,
            _ => ",;&|<>(){}[]".contains(letter),
        };
        let mut end = self.range.start;
        loop {
            let rest = &self.text[end..];
            end += rest.find(is_end).unwrap_or(rest.len());
            // A part of the value may be blotted already.
            match self.text[end..].starts_with(BLOT) {
                true => end += BLOT.len(),
                // The tokens of some have a bar after the number of the app.
                false if self.is_number_and_bar(end) => end += 1,
                false => return end,
            }
        }
    }

    /// `Cookie: name=value; …`
    fn is_cookie(&self) -> bool {
        let name = self.name();
        name.len() <= 10 && name.to_ascii_lowercase().ends_with("cookie")
    }

    /// `MAX_KEY: u32 = 123456;` and `api_token: self.api_token`.
    fn is_code(&self) -> bool {
        if !self.quote.is_empty() || !self.name_quote.is_empty() || self.is_environment() {
            return false;
        }
        let value = self.as_str();
        let is_number = value.starts_with(|it: char| it.is_ascii_digit())
            && value.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'x' | b'_'));
        let is_field = is_path_of_names(value) && value.rsplit('.').next() == Some(self.name());
        is_number
            && value.len() <= 18
            && self.text[skip_blanks(self.text, self.range.end)..].starts_with([';', '+'])
            || is_field
    }

    fn is_number_and_bar(&self, end: usize) -> bool {
        let number = &self.text.as_bytes()[self.range.start..end];
        let next = self.text.as_bytes().get(end + 1);
        (12..=20).contains(&number.len())
            && number.iter().all(u8::is_ascii_digit)
            && self.text[end..].starts_with('|')
            && next.is_some_and(u8::is_ascii_alphanumeric)
    }

    fn is_secret(&self) -> bool {
        let value = self.as_str();
        if self.is_docker_auth() {
            return is_login(value);
        }
        if self.is_cookie() && !value.contains('=') || self.is_code() {
            return false;
        }
        if is_placeholder(value) {
            return false;
        }
        if !self.quote.is_empty() {
            return value.chars().count() >= LEAST_QUOTED;
        }
        let next = self.text[self.range.end..].chars().next();
        let is_tag = self.sign == Sign::Tag;
        let is_code =
            !is_tag && is_path_of_names(value) && next.is_some_and(|it| "([{<`".contains(it));
        match self.sign {
            _ if value.len() < LEAST_BARE || is_code || value.contains("::") => false,
            Sign::Tag => {
                ["</", "]]>"].iter().any(|end| self.text[self.range.end..].starts_with(end))
            }
            Sign::Prose => is_random(value),
            Sign::Flag => !value.starts_with('-'),
            Sign::ShortFlag => !value.starts_with('-') && !is_wordy(value),
            _ => !is_wordy(value) || self.is_environment() || self.stands_alone(next),
        }
    }

    /// `"auth": "…"`, as in Docker's settings: base64 of a user and a password.
    fn is_docker_auth(&self) -> bool {
        self.name() == "auth" && !self.name_quote.is_empty()
    }

    /// Whether a plain word stands where only a value can: in a query, or alone on a line with its name.
    fn stands_alone(&self, next: Option<char>) -> bool {
        let before = self.text[..self.name.start].trim_end_matches([' ', '\t', '-']);
        let is_query = before.len() == self.name.start && before.ends_with(['?', '&', ';']);
        let is_line = before.is_empty() || before.ends_with('\n') || before.ends_with("\\n");
        let ends_line = next.is_none_or(|next| matches!(next, '\n' | '\r' | '\\'));
        let is_type = self.as_str().starts_with(|letter: char| letter.is_uppercase());
        self.sign == Sign::Tight && is_query || is_line && ends_line && !is_type
    }

    /// A number in JSON is replaced by a string, quoted like its key.
    fn quote_of_number(&self) -> &'a str {
        let is_number = self.as_str().starts_with(|it: char| it.is_ascii_digit() || it == '-');
        match self.quote.is_empty() && is_number && self.sign != Sign::Tag {
            true => self.name_quote,
            false => "",
        }
    }
}

/// Does it look like nothing that people write? Sentences about secrets have other words after their `is`.
fn is_random(value: &str) -> bool {
    let has = |is_in: fn(&u8) -> bool| value.as_bytes().iter().any(is_in);
    value.len() >= 16
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// The quote at a place, with the backslashes before it: `"`, `\"`, `\\\"`, or nothing.
pub(super) fn quote_at(text: &str, at: usize) -> &str {
    const MOST_BACKSLASHES: usize = 15;
    let rest = text.get(at..).unwrap_or_default();
    let n = rest.bytes().take(MOST_BACKSLASHES).take_while(|byte| *byte == b'\\').count();
    match rest[n..].starts_with(['"', '\'', '`']) {
        true => &rest[..=n],
        false => "",
    }
}

/// Where a quoted value ends: at the same quote with the same backslashes, or where the string around it
/// or the line ends.
pub(super) fn quoted_end(text: &str, start: usize, quote: &str) -> usize {
    let level = quote.len() - 1;
    let own = quote.as_bytes()[level];
    let mut n_backslashes = 0;
    for (n, byte) in text.as_bytes()[start..].iter().enumerate() {
        let at = start + n;
        match byte {
            b'\\' => {
                n_backslashes += 1;
                continue;
            }
            b'\n' | b'\r' => return at,
            b'"' if n_backslashes < level || own != b'"' && n_backslashes % 2 == 0 => {
                return at - n_backslashes;
            }
            // The backslashes before these are those of the value, each doubled per level, and ours.
            _ if *byte == own
                && n_backslashes >= level
                && (n_backslashes - level).is_multiple_of(2 * (level + 1)) =>
            {
                return at - level;
            }
            _ => {}
        }
        n_backslashes = 0;
    }
    text.len()
}

/// The sign after a name, and where the value starts.
fn sign_after(text: &str, name: &Range<usize>, at: usize, quote: &str) -> Option<(Sign, usize)> {
    let is_flag = text[name.clone()].starts_with("--");
    if let Some(at) = markup::content(text, name, at) {
        return Some((Sign::Tag, at));
    }
    let separate = || separate_value(text, at, quote, is_flag);
    if let Some(at) = markup::attribute(text, at, quote).or_else(separate) {
        return Some((Sign::Loose, at));
    }
    let at = if text[at..].starts_with(']') { at + 1 } else { at };
    let sign_at = skip_blanks(text, at);
    let Some(length) = sign_length(&text[sign_at..]) else {
        const IS: &str = "is ";
        if sign_at > at && text[sign_at..].starts_with(IS) {
            return Some((Sign::Prose, sign_at + IS.len()));
        }
        let is_short =
            text[name.clone()].starts_with('-') && text[..name.start].ends_with([' ', '\t']);
        let flag = if is_flag { Some(Sign::Flag) } else { is_short.then_some(Sign::ShortFlag) };
        return flag.filter(|_| quote.is_empty() && sign_at > at).map(|flag| (flag, sign_at));
    };
    let start = skip_blanks(text, sign_at + length);
    let is_tight = start == at + 1 && text[at..].starts_with('=');
    // `password: String = …`
    if text[sign_at..].starts_with(": ") {
        let is_type = |byte: &u8| byte.is_ascii_alphanumeric() || b"_&<>:.?|'".contains(byte);
        let end =
            start + text.as_bytes()[start..].iter().take(40).take_while(|it| is_type(it)).count();
        let after = skip_blanks(text, end);
        let has_value = end > start && after > end && text[after..].starts_with("= ");
        if has_value {
            return Some((Sign::Loose, skip_blanks(text, after + 1)));
        }
    }
    Some((if is_tight { Sign::Tight } else { Sign::Loose }, start))
}

/// The value of `{"name": "API_KEY", "value": "…"}`, of the same in YAML, or of `["--token", "…"]`.
fn separate_value(text: &str, at: usize, quote: &str, is_flag: bool) -> Option<usize> {
    const VALUE: &str = "value";
    let rest = &text[at..];
    let comma = usize::from(rest.starts_with(','));
    let gap = rest[comma..].len() - rest[comma..].trim_start_matches([' ', '\t', '\n', '\r']).len();
    let next = at + comma + gap;
    if comma == 0 && !rest[..gap].contains('\n') || gap > LONG {
        return None;
    }
    // `define('DB_PASSWORD', '…')` in PHP.
    let is_argument = is_flag || is_defined(text, at, quote);
    if is_argument && comma == 1 && !quote.is_empty() && text[next..].starts_with(quote) {
        return Some(next);
    }
    let start = if comma == 1 { next + quote_at(text, next).len() } else { next };
    let after = start + text[start..].starts_with(VALUE).then_some(VALUE.len())?;
    let after = after + if comma == 1 { quote_at(text, after).len() } else { 0 };
    let colon = skip_blanks(text, after);
    text[colon..].starts_with(':').then(|| skip_blanks(text, colon + 1))
}

fn is_defined(text: &str, at: usize, quote: &str) -> bool {
    const DEFINE: &str = "define(";
    let name = &text[text.floor_char_boundary(at.saturating_sub(LONG))..at];
    let name = name.strip_suffix(quote).unwrap_or(name);
    let before = name.rfind(quote).filter(|_| !quote.is_empty()).map(|at| name[..at].trim_end());
    before.is_some_and(|before| before.ends_with(DEFINE))
}

fn skip_blanks(text: &str, at: usize) -> usize {
    const MOST: usize = 64;
    let blanks = text.as_bytes()[at..].iter().take(MOST);
    at + blanks.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn sign_length(rest: &str) -> Option<usize> {
    ["=>", ":=", "?=", "="]
        .iter()
        .find(|sign| rest.starts_with(**sign))
        .map(|sign| sign.len())
        .or_else(|| rest.starts_with(':').then_some(1))
        .filter(|length| !rest[*length..].starts_with(['=', ':', '~', '>']))
}

/// The length of `Bearer ` and the like at the start of a value.
pub(super) fn scheme_length(value: &str) -> usize {
    ["Bearer ", "Basic ", "Token ", "ApiKey ", "Digest ", "Bot "]
        .iter()
        .find(|scheme| {
            value
                .as_bytes()
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
        })
        .map_or(0, |scheme| scheme.len())
}

/// Whether a value only stands for a secret: a variable, a blank to fill in, a type, a mask.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.trim();
    value.is_empty()
        || value == BLOT
        || is_example(value)
        || is_template(value)
        || is_call(value)
        || is_version(value)
        || is_path(value)
        || value.contains("://")
}

/// Whether a value only shows what to write in its place: `changeme`, `****`, `your-secret-key`.
pub(super) fn is_example(value: &str) -> bool {
    const KEYWORDS: &str = " string str text varchar uuid number integer boolean bool object array bytes any unknown \
        null none nil undefined void true false yes no on off required optional enabled disabled missing invalid \
        expired empty unset default inherit hidden masked redacted prompt auto always never changeme write read ";
    let is_keyword =
        || value.len() <= 16 && KEYWORDS.contains(&format!(" {} ", value.to_lowercase()));
    let is_about =
        || is_wordy(value) && value.len() < LONG && words(value).iter().any(|word| is_about(word));
    is_keyword() || is_mask(value) || is_about()
}

/// `$TOKEN`, `${TOKEN}`, `{{ token }}`, `<token>`, `%TOKEN%`.
fn is_template(value: &str) -> bool {
    let enclosed = |open, close| value.starts_with(open) && value.ends_with(close);
    let is_variable = value.strip_prefix('$').is_some_and(|rest| {
        let after = rest.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || it == '_');
        let is_name = rest.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        is_name && (after.is_empty() || after.starts_with(['/', ':', '.', '-']))
    });
    is_variable
        || enclosed('<', '>')
        || enclosed('{', '}')
        || enclosed('%', '%')
        || ["${", "$(", "{{", "#{", "<%"].iter().any(|mark| value.contains(mark))
}

/// `****`, `xxxx-xxxx`, `sk-…`, `abc...xyz`.
fn is_mask(value: &str) -> bool {
    let mut letters: Vec<char> = value.chars().take(LONG).filter(|it| *it != '-').collect();
    letters.sort_unstable();
    letters.dedup();
    letters.len() <= 1
        || value.starts_with('*')
        || ["***", "...", "…", "xxxx", "XXXX"].iter().any(|mark| value.contains(mark))
}

/// `getenv("TOKEN")`, `process.env.TOKEN`, `os.environ["TOKEN"]`.
fn is_call(value: &str) -> bool {
    const STARTS: [&str; 7] =
        ["process.env", "os.environ", "import.meta", "Deno.env", "secrets.", "vault:", "op:"];
    let is_call = value.ends_with(')')
        && value.split_once('(').is_some_and(|(name, _)| is_path_of_names(name));
    is_call || STARTS.iter().any(|start| value.starts_with(start))
}

/// `^9.0.2`, `>=1.2`, `12.5`.
fn is_version(value: &str) -> bool {
    let number = value.trim_start_matches(['^', '~', '>', '<', '=', 'v', ' ']);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    number.contains('.') && number.len() <= 20 && number.split('.').all(is_number)
}

/// `self.tokens.next`, `Token::new`: how code names things.
fn is_path_of_names(value: &str) -> bool {
    let is_name = |it: char| it.is_alphanumeric() || matches!(it, '_' | '.' | ':' | '!' | '?');
    value.starts_with(|it: char| it.is_alphabetic() || it == '_') && value.chars().all(is_name)
}

/// Only letters, with the usual signs between them.
pub(super) fn is_wordy(value: &str) -> bool {
    value.chars().all(|it| it.is_alphabetic() || " _-.,:;!?/@'’".contains(it))
}

fn is_about(word: &str) -> bool {
    const ABOUT: &str = " your my the example placeholder insert enter dummy fake sample todo here pass key keys \
        credential credentials ";
    ABOUT.contains(&format!(" {word} "))
        || ["password", "passwd", "secret", "secrets", "token", "tokens", "apikey", "passphrase"]
            .iter()
            .any(|end| word.ends_with(end))
}
