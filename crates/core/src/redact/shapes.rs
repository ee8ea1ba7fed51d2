//! Secrets that show themselves: tokens as their providers make them, private keys, passwords in URLs.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::{LONG, Spot, assigned};

/// What follows the start of a token.
#[derive(Clone, Copy)]
enum Body {
    /// Letters, digits, `_` and `-`: at least so many, and not just words.
    Word(usize),
    /// Letters and digits: at least so many, and not just words.
    Alnum(usize),
    /// A word with dots.
    Dotted(usize),
    /// Capitals and digits: at least so many.
    Upper(usize),
    /// Hexadecimal digits: exactly so many.
    Hex(usize),
    /// What base64 and percent encoding are made of. The start stays: it is no part of the secret.
    Value(usize),
    /// Three parts with dots between them, each at least so long.
    Parts([usize; 3]),
    /// After a number and a colon.
    Telegram,
}

use Body::{Alnum, Dotted, Hex, Parts, Telegram, Upper, Value, Word};

/// A bot's token starts with its number in base64, and numbers start with one of nine digits.
const DISCORD: Body = Parts([20, 6, 27]);

#[rustfmt::skip]
const SHAPES: [(&str, Body); 143] = [
    // Models.
    ("sk-", Word(20)), ("sess-", Word(40)), ("xai-", Word(40)), ("gsk_", Alnum(40)), ("pplx-", Alnum(40)),
    ("r8_", Alnum(36)), ("fw_", Alnum(20)), ("csk-", Word(40)), ("lsv2_", Word(30)), ("tvly-", Word(20)),
    ("nvapi-", Word(40)), ("hf_", Alnum(30)), ("api_org_", Alnum(30)), ("sk_", Alnum(40)),
    // Code.
    ("ghp_", Alnum(30)), ("gho_", Alnum(30)), ("ghu_", Alnum(30)), ("ghs_", Dotted(30)), ("ghr_", Alnum(30)),
    ("github_pat_", Word(30)),
    ("glpat-", Dotted(20)), ("gldt-", Dotted(20)), ("glrt-", Dotted(20)), ("glcbt-", Dotted(20)),
    ("glptt-", Dotted(20)), ("glft-", Dotted(20)), ("glimt-", Dotted(20)), ("glagent-", Dotted(20)),
    ("gloas-", Dotted(20)), ("glsoat-", Dotted(20)), ("glffct-", Dotted(20)), ("GR1348941", Word(20)),
    ("ATATT3", Value(100)), ("ATCTT3", Value(100)), ("ATBB", Alnum(32)),
    ("bkua_", Hex(40)), ("CCIPAT_", Word(40)), ("CCIPRJ_", Word(40)), ("sgp_", Word(40)),
    ("squ_", Hex(40)), ("sqp_", Hex(40)), ("sqa_", Hex(40)), ("sntrys_", Value(40)), ("sntryu_", Hex(64)),
    // Packages.
    ("npm_", Alnum(36)), ("pypi-", Word(50)), ("rubygems_", Hex(48)), ("cio", Alnum(32)),
    ("dckr_pat_", Word(20)), ("dckr_oat_", Word(20)), ("AKCp", Word(60)), ("CLOJARS_", Hex(60)),
    // Clouds.
    ("AKIA", Upper(16)), ("ASIA", Upper(16)), ("ABIA", Upper(16)), ("ACCA", Upper(16)),
    ("X-Amz-Signature=", Value(64)), ("X-Amz-Security-Token=", Value(40)),
    ("AIza", Word(30)), ("ya29.", Dotted(20)), ("GOCSPX-", Word(20)), ("1//0", Word(30)),
    ("AccountKey=", Value(40)), ("SharedAccessKey=", Value(40)), ("sig=", Value(40)),
    ("dop_v1_", Hex(64)), ("doo_v1_", Hex(64)), ("dor_v1_", Hex(64)), ("dapi", Hex(32)),
    ("HRKU-", Word(36)), ("rnd_", Alnum(28)), ("nfp_", Alnum(36)), ("fo1_", Word(40)), ("fm1_", Value(40)),
    ("fm2_", Value(40)), ("tskey-", Word(20)), ("atlasv1.", Word(60)), ("pul-", Hex(40)),
    ("pscale_tkn_", Word(30)), ("pscale_pw_", Word(30)), ("pscale_oauth_", Word(30)),
    ("sbp_", Hex(40)), ("sb_secret_", Word(20)),
    // Keepers of secrets.
    ("hvs.", Dotted(20)), ("hvb.", Dotted(20)), ("hvr.", Dotted(20)), ("ops_eyJ", Word(60)),
    ("dp.pt.", Alnum(30)), ("dp.st.", Dotted(30)), ("dp.ct.", Alnum(30)), ("dp.sa.", Alnum(30)),
    ("dp.scim.", Alnum(30)), ("dp.audit.", Alnum(30)),
    ("AGE-SECRET-KEY-1", Upper(50)), ("AGE-SECRET-KEY-PQ-1", Upper(50)),
    // Money and shops.
    ("sk_live_", Word(16)), ("sk_test_", Word(16)), ("rk_live_", Word(16)), ("rk_test_", Word(16)),
    ("whsec_", Value(16)), ("sq0atp-", Word(20)), ("sq0csp-", Word(20)), ("EAAA", Word(60)),
    ("shpat_", Hex(32)), ("shpca_", Hex(32)), ("shppa_", Hex(32)), ("shpss_", Hex(32)),
    ("access-production-", Word(36)),
    // Messages.
    ("xoxb-", Word(20)), ("xoxp-", Word(20)), ("xoxa-", Word(20)), ("xoxr-", Word(20)), ("xoxs-", Word(20)),
    ("xoxc-", Word(20)), ("xoxd-", Value(20)), ("xoxe-", Word(20)), ("xoxe.", Dotted(20)), ("xapp-", Word(20)),
    ("hooks.slack.com/services/", Value(20)), ("hooks.slack.com/workflows/", Value(20)),
    ("discord.com/api/webhooks/", Value(40)), ("discordapp.com/api/webhooks/", Value(40)),
    ("MT", DISCORD), ("Mj", DISCORD), ("Mz", DISCORD), ("ND", DISCORD), ("NT", DISCORD), ("Nj", DISCORD),
    ("Nz", DISCORD), ("OD", DISCORD), ("OT", DISCORD),
    (":AA", Telegram), ("SK", Hex(32)), ("key-", Hex(32)), ("SG.", Parts([16, 30, 0])),
    ("xkeysib-", Word(60)),
    // Work.
    ("lin_api_", Alnum(30)), ("lin_oauth_", Alnum(30)), ("ntn_", Alnum(40)), ("secret_", Alnum(43)),
    ("PMAK-", Word(50)), ("figd_", Word(40)), ("glc_", Value(32)),
];

/// Those that have no provider, or too many.
#[rustfmt::skip]
const COMMON: [(&str, Body); 8] = [
    ("eyJ", Parts([10, 10, 0])), ("glsa_", Word(32)), ("NRAK-", Alnum(27)), ("aio_", Alnum(28)),
    ("Bearer ", Value(16)), ("bearer ", Value(16)), ("BEARER ", Value(16)), ("sk.eyJ", Dotted(60)),
];

static STARTS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let starts = SHAPES.iter().chain(&COMMON).map(|(start, _)| start);
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(starts)
        .expect("a fixed and short list")
});

/// Tokens by their shape.
pub(super) fn tokens(text: &str) -> Vec<Spot<'_>> {
    let mut spots = Vec::new();
    let mut from = 0;
    for start in STARTS.find_iter(text) {
        if start.start() < from || !is_start(text, start.start()) {
            continue;
        }
        let number = start.pattern().as_usize();
        let Some((_, body)) = SHAPES.iter().chain(&COMMON).nth(number) else {
            continue;
        };
        let found = body.at(&text[start.end()..]);
        let end = start.end() + found.len();
        // A long text that is no token is not looked at again, or the time would not be linear.
        if found.len() > LONG {
            from = end;
        }
        let start = match body {
            Value(_) => start.end(),
            // The colon stays, and the number of the bot before it.
            Telegram => start.start() + 1,
            _ => start.start(),
        };
        if body.fits(found) {
            from = end;
            spots.push(Spot::at(start..end));
        }
    }
    spots
}

impl Body {
    /// What of a text can belong to the token.
    fn at(self, rest: &str) -> &str {
        let run = |is_in: fn(u8) -> bool| {
            &rest[..rest.bytes().position(|byte| !is_in(byte)).unwrap_or(rest.len())]
        };
        match self {
            Word(_) | Hex(_) | Telegram => run(is_word),
            Alnum(_) => run(|byte| byte.is_ascii_alphanumeric()),
            Upper(_) => run(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
            Value(_) => run(is_value).trim_end_matches('.'),
            Dotted(_) | Parts(_) => run(is_dotted).trim_end_matches('.'),
        }
    }

    fn fits(self, found: &str) -> bool {
        match self {
            Word(least) | Alnum(least) | Dotted(least) | Value(least) => {
                found.len() >= least && is_varied(found)
            }
            Upper(least) => found.len() >= least,
            Hex(exactly) => found.split_at_checked(exactly).is_some_and(|(hex, after)| {
                let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex && (after.is_empty() || after.starts_with('-'))
            }),
            Parts(least) => {
                let mut parts = found.split('.');
                least.into_iter().all(|least| parts.next().map_or(0, str::len) >= least)
            }
            Telegram => found.len() == 33,
        }
    }
}

/// Whether a token can start here: not inside a word, but after an escape, a colour or a dash.
fn is_start(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[at.saturating_sub(12)..at];
    if text[at..].starts_with(":AA") {
        return before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count() >= 8;
    }
    match before {
        [] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        // `\n` in a JSON string.
        [.., b'\\', b'n' | b't' | b'r'] => true,
        [rest @ .., b'm'] => {
            let code = rest.iter().rposition(|byte| !matches!(byte, b'0'..=b'9' | b';'));
            code.is_some_and(|at| rest[at] == b'[')
        }
        [.., byte] => !byte.is_ascii_alphanumeric(),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_dotted(byte: u8) -> bool {
    is_word(byte) || byte == b'.'
}

fn is_value(byte: u8) -> bool {
    is_dotted(byte) || matches!(byte, b'+' | b'/' | b'=' | b'~' | b'%')
}

/// Random letters have a digit, or both cases, among them; words and `xxxx` do not.
fn is_varied(found: &str) -> bool {
    let has = |is_in: fn(&u8) -> bool| found.as_bytes().iter().any(is_in);
    has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

/// Private keys, each as a whole, also with their line ends escaped. One that breaks off goes as far as
/// it looks like one.
pub(super) fn keys(text: &str) -> Vec<Spot<'_>> {
    const BEGIN: &str = "-----BEGIN ";
    const DASHES: &str = "-----";
    /// As in `OPENSSH PRIVATE KEY`.
    const LONGEST_KIND: usize = 60;
    let mut spots = Vec::new();
    let mut from = 0;
    for (start, _) in text.match_indices(BEGIN) {
        let kind = &text[start + BEGIN.len()..];
        let kind = &kind[..kind.floor_char_boundary(LONGEST_KIND)];
        let Some(length) = kind.find(DASHES).filter(|end| kind[..*end].contains("PRIVATE KEY"))
        else {
            continue;
        };
        if start < from {
            continue;
        }
        from = end_of_key(text, start + BEGIN.len() + length + DASHES.len());
        spots.push(Spot::at(start..from));
    }
    spots
}

fn end_of_key(text: &str, body: usize) -> usize {
    const END: &str = "-----END ";
    let rest = &text[body..];
    let dashes = rest.find("-----").unwrap_or(rest.len());
    let quote = rest[..dashes].find(['"', '\'', '`']);
    if quote.is_none() && rest[dashes..].starts_with(END) {
        let kind = &rest[dashes + END.len()..];
        let kind = &kind[..kind.floor_char_boundary(60)];
        let closing = kind.find("-----").map_or(0, |closing| closing + 5);
        return body + dashes + END.len() + closing;
    }
    let mut before = b'\n';
    let length = rest.bytes().take(quote.unwrap_or(dashes)).take_while(|byte| {
        let is_indent = *byte == b' ' && matches!(before, b'\n' | b' ' | b':');
        before = *byte;
        is_indent || is_value(*byte) || matches!(byte, b'\n' | b'\r' | b'\t' | b'\\' | b':' | b',')
    });
    // A backslash before the quote belongs to the quote.
    let length = rest[..length.count()].trim_end_matches('\\').trim_end().len();
    body + length
}

/// Passwords in URLs. The user and the host stay.
pub(super) fn urls(text: &str) -> Vec<Spot<'_>> {
    let mut spots = Vec::new();
    // Some encoders of JSON escape the slash.
    for mark in ["://", ":\\/\\/"] {
        for (at, _) in text.match_indices(mark) {
            spots.extend(password_at(text, at + mark.len()).map(Spot::at));
        }
    }
    spots.sort_by_key(|spot| spot.range.start);
    spots
}

/// The password in a value that is a URL.
pub(super) fn password_in_url(value: &str) -> Option<&str> {
    let host = value.find("://")? + 3;
    password_at(value, host).map(|range| &value[range])
}

fn password_at(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let is_end = |letter: char| letter.is_whitespace() || "/?#\"'`\\<>,|".contains(letter);
    let place = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let (login, _) = place.rsplit_once('@')?;
    let (user, password) = login.split_once(':')?;
    let is_hidden = password.is_empty() || assigned::is_placeholder(password);
    let at = start + user.len() + 1;
    (!is_hidden).then(|| at..at + password.len())
}
