//! Tokens that show themselves by the shape their providers give them.

use std::ops::Range;

use super::search::{self, Search};
use super::{LONG, Spot};

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
    /// The same, with a digit in each part.
    DigitParts([usize; 3]),
    /// Letters and digits: exactly so many, and not all of them hexadecimal.
    Exactly(usize),
    /// Capitals and digits in groups with dashes between them: at least so many, four groups or more.
    Groups(usize),
    /// The path of a URL. The start stays.
    Path(usize),
    /// After a number and a colon.
    Telegram,
    /// After three letters and a digit.
    AzureSecret,
    /// `.acc` and the account stand in the middle of it.
    Authress,
    /// After 32 hexadecimal digits: the number of a data centre.
    Mailchimp,
    /// Base64 of `user:password`. The start stays.
    Login,
}

use Body::{
    Alnum, Authress, AzureSecret, DigitParts, Dotted, Exactly, Groups, Hex, Login, Mailchimp,
    Parts, Path, Telegram, Upper, Value, Word,
};

/// A bot's token starts with its number in base64, and numbers start with one of nine digits.
const DISCORD: Body = Parts([20, 6, 27]);

#[rustfmt::skip]
const SHAPES: [(&str, Body); 200] = [
    // Models.
    ("sk-", Word(20)), ("sess-", Word(40)), ("xai-", Word(40)), ("gsk_", Alnum(40)), ("pplx-", Alnum(40)),
    ("r8_", Alnum(36)), ("fw_", Alnum(20)), ("csk-", Word(40)), ("lsv2_", Word(30)), ("tvly-", Word(20)),
    ("nvapi-", Word(40)), ("hf_", Alnum(30)), ("api_org_", Alnum(30)), ("sk_", Alnum(40)),
    ("ABSK", Value(100)), ("bedrock-api-key-", Value(20)), ("pnu_", Alnum(30)), ("pnb_", Alnum(30)),
    // Code.
    ("ghp_", Alnum(30)), ("gho_", Alnum(30)), ("ghu_", Alnum(30)), ("ghs_", Dotted(30)), ("ghr_", Alnum(30)),
    ("github_pat_", Word(30)),
    ("glpat-", Dotted(20)), ("gldt-", Dotted(20)), ("glrt-", Dotted(20)), ("glcbt-", Dotted(20)),
    ("glptt-", Dotted(20)), ("glft-", Dotted(20)), ("glimt-", Dotted(20)), ("glagent-", Dotted(20)),
    ("gloas-", Dotted(20)), ("glsoat-", Dotted(20)), ("glffct-", Dotted(20)), ("GR1348941", Word(20)),
    ("_gitlab_session=", Value(20)),
    ("ATATT3", Value(100)), ("ATCTT3", Value(100)), ("ATBB", Alnum(32)),
    ("bkua_", Hex(40)), ("CCIPAT_", Word(40)), ("CCIPRJ_", Word(40)), ("sgp_", Word(40)),
    ("squ_", Hex(40)), ("sqp_", Hex(40)), ("sqa_", Hex(40)), ("sntrys_", Value(40)), ("sntryu_", Hex(64)),
    ("pat.", DigitParts([18, 18, 16])), ("sat.", DigitParts([18, 18, 16])), ("API-", Exactly(26)),
    ("rdme_", Alnum(60)), ("s-s4t2ud-", Hex(64)), ("s-s4t2af-", Hex(64)),
    // Packages.
    ("npm_", Alnum(36)), ("pypi-", Word(50)), ("rubygems_", Hex(48)), ("cio", Alnum(32)),
    ("dckr_pat_", Word(20)), ("dckr_oat_", Word(20)), ("AKCp", Word(60)), ("CLOJARS_", Hex(60)),
    ("cmVmd", Alnum(59)), ("CONTRIBSYS__COM=", Path(8)),
    // Clouds.
    ("AKIA", Upper(16)), ("ASIA", Upper(16)), ("ABIA", Upper(16)), ("ACCA", Upper(16)),
    ("LTAI", Alnum(16)), ("Q~", AzureSecret), ("t1.9euel", Dotted(60)), ("AQVN", Word(35)), ("YC", Exactly(38)),
    ("4b1d", Exactly(38)), ("v1.0-", Word(150)), ("sha256~", Word(40)), ("dnkey-", Word(26)), ("ico-", Alnum(32)),
    ("dt0c01.", DigitParts([20, 60, 0])), ("tk-us-", Word(40)), ("webhook.office.com/webhookb2/", Path(40)),
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
    ("A3-", Groups(30)), ("authress_", Authress), ("scauth_", Authress), ("sc_", Authress), ("ext_", Authress),
    ("xprv", Alnum(100)),
    // Money and shops.
    ("sk_live_", Word(16)), ("sk_test_", Word(16)), ("rk_live_", Word(16)), ("rk_test_", Word(16)),
    ("whsec_", Value(16)), ("sq0atp-", Word(20)), ("sq0csp-", Word(20)), ("EAAA", Word(60)),
    ("shpat_", Hex(32)), ("shpca_", Hex(32)), ("shppa_", Hex(32)), ("shpss_", Hex(32)),
    ("access-production-", Word(36)),
    ("access-sandbox-", Word(36)), ("access-development-", Word(36)), ("EZAK", Alnum(54)), ("EZTK", Alnum(54)),
    ("FLWSECK", Word(17)), ("duffel_test_", Word(40)), ("duffel_live_", Word(40)), ("shippo_live_", Hex(40)),
    ("shippo_test_", Hex(40)), ("sm_aat_", Alnum(16)), ("sm_pat_", Alnum(16)), ("sm_sat_", Alnum(16)),
    // Messages.
    ("xoxb-", Word(20)), ("xoxp-", Word(20)), ("xoxa-", Word(20)), ("xoxr-", Word(20)), ("xoxs-", Word(20)),
    ("xoxc-", Word(20)), ("xoxd-", Value(20)), ("xoxe-", Word(20)), ("xoxe.", Dotted(20)), ("xapp-", Word(20)),
    ("hooks.slack.com/services/", Value(20)), ("hooks.slack.com/workflows/", Value(20)),
    ("discord.com/api/webhooks/", Value(40)), ("discordapp.com/api/webhooks/", Value(40)),
    ("MT", DISCORD), ("Mj", DISCORD), ("Mz", DISCORD), ("ND", DISCORD), ("NT", DISCORD), ("Nj", DISCORD),
    ("Nz", DISCORD), ("OD", DISCORD), ("OT", DISCORD),
    (":AA", Telegram), ("SK", Hex(32)), ("key-", Hex(32)), ("SG.", Parts([16, 30, 0])),
    ("xkeysib-", Word(60)), ("-us", Mailchimp), ("SSWS ", Value(30)),
    ("EAAB", Alnum(80)), ("EAAC", Alnum(80)), ("EAAG", Alnum(80)), ("EAAM", Alnum(80)),
    // Work.
    ("lin_api_", Alnum(30)), ("lin_oauth_", Alnum(30)), ("ntn_", Alnum(40)), ("secret_", Alnum(43)),
    ("PMAK-", Word(50)), ("figd_", Word(40)), ("glc_", Value(32)),
    ("pat", DigitParts([14, 60, 0])), ("p8e-", Alnum(32)), ("sl.", Word(100)), ("tfp_", Word(40)),
    ("fio-u-", Word(60)), ("NRJS-", Alnum(19)), ("NRII-", Word(30)),
];

/// Those that have no provider, or too many.
#[rustfmt::skip]
const COMMON: [(&str, Body); 14] = [
    ("Basic ", Login), ("basic ", Login), ("eyJrIjoi", Value(60)), ("ZXlKaGJHY2lPaU", Value(40)),
    ("ZXlKMGVYQWlPaU", Value(40)), ("ZXlKcmFXUWlPaU", Value(40)),
    ("eyJ", Parts([10, 10, 0])), ("glsa_", Word(32)), ("NRAK-", Alnum(27)), ("aio_", Alnum(28)),
    ("Bearer ", Value(16)), ("bearer ", Value(16)), ("BEARER ", Value(16)), ("sk.eyJ", Dotted(60)),
];

static STARTS: Search = Search::new(|| search::quick(starts()), || search::fast(starts()));

fn starts() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().chain(&COMMON).map(|(start, _)| *start)
}

/// Tokens by their shape.
pub(super) fn tokens(text: &str) -> Vec<Spot<'_>> {
    let mut spots = Vec::new();
    let mut from = 0;
    for start in STARTS.each(text) {
        let number = start.pattern().as_usize();
        let Some((name, body)) = SHAPES.iter().chain(&COMMON).nth(number) else {
            continue;
        };
        if start.start() < from || !body.can_start(text, start.start()) {
            continue;
        }
        let found = body.at(&text[start.end()..]);
        let end = start.end() + found.len();
        let free_from = from;
        // A long text that is no token is not looked at again, or the time would not be linear.
        if found.len() > LONG {
            from = end;
        }
        if !body.fits(found) {
            continue;
        }
        let start = body.first(&start.range());
        if start < free_from {
            continue;
        }
        let is_aws_id = matches!(*name, "AKIA" | "ASIA");
        let secret = is_aws_id.then(|| aws_secret_near(text, free_from, start..end)).flatten();
        from = secret.iter().map(|secret| secret.end).fold(end, usize::max);
        let mut both = [Some(start..end), secret];
        both.sort_by_key(|range| range.as_ref().map_or(usize::MAX, |range| range.start));
        spots.extend(both.into_iter().flatten().map(Spot::at));
    }
    spots
}

/// The secret key that belongs to the id of an AWS key: forty letters of base64, which nothing but the id
/// beside them gives away.
fn aws_secret_near(text: &str, from: usize, id: Range<usize>) -> Option<Range<usize>> {
    const NEAR: usize = 200;
    const LENGTH: usize = 40;
    let is_in = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let bytes = text.as_bytes();
    let is_secret = |run: &Range<usize>| {
        let run = &bytes[run.clone()];
        let has = |is_in: fn(&u8) -> bool| run.iter().any(is_in);
        run.len() == LENGTH
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
    };
    let find = |within: Range<usize>| {
        let mut at = within.start;
        std::iter::from_fn(|| {
            at += bytes[at..within.end].iter().position(|byte| is_in(*byte))?;
            let start = at;
            at += bytes[at..within.end].iter().take_while(|byte| is_in(**byte)).count();
            Some(start..at)
        })
        .find(is_secret)
    };
    let end = text.len().min(id.end + NEAR);
    let next = text[id.end..text.floor_char_boundary(end)].find("AKIA").map(|at| id.end + at);
    find(id.end..next.unwrap_or(end))
        .or_else(|| find(from.max(id.start.saturating_sub(NEAR))..id.start))
}

impl Body {
    /// What of a text can belong to the token.
    fn at(self, rest: &str) -> &str {
        let run = |is_in: fn(u8) -> bool| {
            &rest[..rest.bytes().position(|byte| !is_in(byte)).unwrap_or(rest.len())]
        };
        match self {
            Word(_) | Hex(_) | Telegram => run(is_word),
            Alnum(_) | Exactly(_) => run(|byte| byte.is_ascii_alphanumeric()),
            Upper(_) => run(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
            Groups(_) => {
                run(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-')
            }
            Value(_) | Login => run(is_value).trim_end_matches('.'),
            Path(_) => run(|byte| is_value(byte) || matches!(byte, b'@' | b':')),
            Dotted(_) | Parts(_) | DigitParts(_) | Authress => run(is_dotted).trim_end_matches('.'),
            AzureSecret => run(|byte| is_dotted(byte) || byte == b'~'),
            Mailchimp => run(|byte| byte.is_ascii_digit()),
        }
    }

    fn fits(self, found: &str) -> bool {
        match self {
            Word(least) | Alnum(least) | Dotted(least) | Value(least) | Path(least) => {
                found.len() >= least && is_varied(found)
            }
            Upper(least) => found.len() >= least,
            Hex(exactly) => found.split_at_checked(exactly).is_some_and(|(hex, after)| {
                let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex && (after.is_empty() || after.starts_with('-'))
            }),
            Exactly(length) => {
                found.len() == length
                    && found.bytes().any(|byte| byte.is_ascii_digit())
                    && !found.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Groups(least) => {
                let has_digit = found.bytes().any(|byte| byte.is_ascii_digit());
                found.len() >= least && has_digit && found.matches('-').count() >= 4
            }
            Parts(least) => has_parts(found, least),
            DigitParts(least) => {
                let has_digit = |part: &str| part.bytes().any(|byte| byte.is_ascii_digit());
                has_parts(found, least) && found.split('.').take(2).all(has_digit)
            }
            Authress => found.len() >= 50 && found.contains(".acc") && is_varied(found),
            AzureSecret => (31..=34).contains(&found.len()) && is_varied(found),
            Telegram => found.len() == 33,
            Mailchimp => (1..=2).contains(&found.len()),
            Login => is_login(found),
        }
    }

    /// Where the secret starts, given where its mark stands.
    fn first(self, mark: &Range<usize>) -> usize {
        match self {
            Value(_) | Path(_) | Login => mark.end,
            // The colon stays, and the number of the bot before it.
            Telegram => mark.start + 1,
            AzureSecret => mark.start - 4,
            Mailchimp => mark.start - 32,
            _ => mark.start,
        }
    }

    /// Whether a token can start here: not inside a word, but after an escape, a colour or a dash.
    fn can_start(self, text: &str, at: usize) -> bool {
        let before = &text.as_bytes()[..at];
        match self {
            Telegram => {
                let digits = before.iter().rev().take(12).take_while(|byte| byte.is_ascii_digit());
                digits.count() >= 8
            }
            AzureSecret => match before {
                [rest @ .., one, two, three, digit] => {
                    digit.is_ascii_digit()
                        && [one, two, three].iter().all(|byte| is_dotted(**byte) || **byte == b'~')
                        && rest.last().is_none_or(|byte| !is_word(*byte))
                }
                _ => false,
            },
            Mailchimp => {
                let hex = before.iter().rev().take(33).take_while(|byte| byte.is_ascii_hexdigit());
                let n_hex = hex.count();
                n_hex == 32 && before.iter().rev().nth(32).is_none_or(|byte| !is_word(*byte))
            }
            _ => is_start(before),
        }
    }
}

fn is_start(before: &[u8]) -> bool {
    let before = &before[before.len().saturating_sub(12)..];
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

fn has_parts(found: &str, least: [usize; 3]) -> bool {
    let mut parts = found.split('.');
    least.into_iter().all(|least| parts.next().map_or(0, str::len) >= least)
}

/// Whether this is base64 of a user, a colon and a password.
pub(super) fn is_login(found: &str) -> bool {
    let mut bits = 0_u32;
    let mut n_bits = 0;
    let mut plain = Vec::new();
    for byte in found.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = bits << 6 | u32::from(value);
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            plain.push((bits >> n_bits) as u8);
        }
    }
    let text = str::from_utf8(&plain).unwrap_or_default();
    let is_printable = !text.chars().any(char::is_control);
    text.len() >= 5
        && is_printable
        && text.split_once(':').is_some_and(|(_, after)| !after.is_empty())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

pub(super) fn is_dotted(byte: u8) -> bool {
    is_word(byte) || byte == b'.'
}

pub(super) fn is_value(byte: u8) -> bool {
    is_dotted(byte) || matches!(byte, b'+' | b'/' | b'=' | b'~' | b'%')
}

/// Random letters have a digit, or both cases, among them; words and `xxxx` do not.
fn is_varied(found: &str) -> bool {
    let has = |is_in: fn(&u8) -> bool| found.as_bytes().iter().any(is_in);
    has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}
