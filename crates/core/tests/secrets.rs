//! Planted secrets, of which none survives, and harmless lines, which stay to the letter.
//!
//! In the files `%%NAME%%` stands for a fake that is only put together here, so that nobody's scanner
//! takes it for a real one, and `␤` for a line end.

use std::time::{Duration, Instant};

use bivouac_core::redact::{Redactor, is_telling, redact};
use proptest::prelude::*;
use serde_json::{Value, json};

const PLANTED: &str = include_str!("secrets/planted.txt");
const HARMLESS: &str = include_str!("secrets/harmless.txt");
const BLOT: &str = "[redacted]";

fn cycle(letters: &str, length: usize) -> String {
    letters.chars().cycle().take(length).collect()
}

fn letters(length: usize) -> String {
    cycle("Fake0Secret1Nobody2Uses3", length)
}

fn hex(length: usize) -> String {
    cycle("fade0123", length)
}

fn pem(kind: &str, line_end: &str) -> String {
    let dashes = "-".repeat(5);
    let lines = [
        format!("{dashes}BEGIN {kind}PRIVATE KEY{dashes}"),
        letters(64),
        format!("{}+/=", letters(40)),
        format!("{dashes}END {kind}PRIVATE KEY{dashes}"),
    ];
    lines.join(line_end)
}

fn fake(name: &str) -> String {
    match name {
        "GHP" => "ghp_".to_owned() + &letters(36),
        "GHS" => "ghs_".to_owned() + &letters(36),
        "GHPAT" => "github_pat_".to_owned() + &letters(22) + "_" + &letters(59),
        "GLPAT" => "glpat-".to_owned() + &letters(20),
        "GLRT" => "glrt-".to_owned() + &letters(20),
        "OPENAI" => "sk-proj-".to_owned() + &letters(48),
        "ANTHROPIC" => "sk-ant-api03-".to_owned() + &letters(80) + "-" + &letters(12),
        "SLACK" => "xoxb-".to_owned() + "123456789012-" + &letters(24),
        "XAPP" => "xapp-".to_owned() + "1-A0-" + &letters(40),
        "HOOK" => "T000".to_owned() + "/B000/" + &letters(24),
        "AKIA" => "AKIA".to_owned() + &cycle("FAKE2345", 16),
        "AWSSECRET" => letters(20) + "/" + &letters(9) + "+" + &letters(9),
        "AIZA" => "AIza".to_owned() + &letters(35),
        "YA29" => "ya29.".to_owned() + "a0" + &letters(60),
        "GOCSPX" => "GOCSPX-".to_owned() + &letters(28),
        "STRIPE" => "sk_live_".to_owned() + &letters(24),
        "ALNUM" => letters(32),
        "TWILIO" => "SK".to_owned() + &hex(32),
        "SENDGRID" => "SG.".to_owned() + &letters(22) + "." + &letters(43),
        "NPM" => "npm_".to_owned() + &letters(36),
        "PYPI" => "pypi-".to_owned() + "AgEI" + &letters(100),
        "HF" => "hf_".to_owned() + &letters(34),
        "DISCORD" => "MT".to_owned() + &letters(24) + "." + &letters(6) + "." + &letters(38),
        "TELEGRAM" => "AA".to_owned() + &letters(33),
        "AGE" => "AGE-SECRET-KEY-1".to_owned() + &cycle("FAKE2345", 58),
        "DAPI" => "dapi".to_owned() + &hex(32),
        "DOP" => "dop_v1_".to_owned() + &hex(64),
        "SHPAT" => "shpat_".to_owned() + &hex(32),
        "LINEAR" => "lin_api_".to_owned() + &letters(40),
        "NOTION" => "ntn_".to_owned() + &letters(46),
        "VAULT" => "hvs.".to_owned() + &letters(90),
        "DOPPLER" => "dp.pt.".to_owned() + &letters(43),
        "PSCALE" => "pscale_tkn_".to_owned() + &letters(43),
        "SUPABASE" => "sbp_".to_owned() + &hex(40),
        "SENTRY" => "sntryu_".to_owned() + &hex(64),
        "GRAFANA" => "glsa_".to_owned() + &letters(32) + "_" + &hex(8),
        other => assembled(other),
    }
}

fn assembled(name: &str) -> String {
    match name {
        "JWT" => ["eyJ", &letters(20), ".eyJ", &letters(40), ".", &letters(43)].concat(),
        "BASIC" => letters(24) + "==",
        "AZURE" => letters(86) + "==",
        "PW" => "Tr0ub4dor".to_owned() + "-x9",
        "WORD" => "swordfish".to_owned() + "horse",
        "PHRASE" => "correct horse ".to_owned() + "battery staple",
        "QUOTED" => r#"a\"b9{c]"#.to_owned() + r"d\\",
        "PEM" => pem("RSA ", "\n"),
        "PEMJSON" => pem("", "\\n"),
        "OPENSSH" => pem("OPENSSH ", "\n"),
        other => panic!("no such fake: {other}"),
    }
}

/// The line with its fakes and the line as it must come out.
fn planted(line: &str) -> (String, String) {
    let (mut text, mut expected) = (String::new(), String::new());
    for (n, piece) in line.replace('␤', "\n").split("%%").enumerate() {
        let is_fake = n % 2 == 1;
        text.push_str(&if is_fake { fake(piece) } else { piece.to_owned() });
        expected.push_str(if is_fake { BLOT } else { piece });
    }
    (text, expected)
}

#[test]
fn no_planted_secret_survives_and_all_around_it_does() {
    let lines = || PLANTED.lines();
    assert!(lines().count() >= 60);
    let wrong: Vec<String> = lines()
        .map(planted)
        .filter(|(text, expected)| redact(text) != *expected)
        .map(|(text, expected)| format!("{text}\n  {}\n  {expected}", redact(&text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn secrets_are_found_in_the_midst_of_each_other() {
    let all: Vec<(String, String)> = PLANTED.lines().map(planted).collect();
    let text: Vec<&str> = all.iter().map(|(text, _)| text.as_str()).collect();
    let expected: Vec<&str> = all.iter().map(|(_, expected)| expected.as_str()).collect();
    assert_eq!(redact(&text.join("\n")), expected.join("\n"));
    let mut logged = json!({ "lines": text });
    Redactor::default().redact_json(&mut logged);
    assert_eq!(logged, json!({ "lines": expected }));
}

#[test]
fn harmless_lines_stay_to_the_letter() {
    assert!(HARMLESS.lines().count() >= 60);
    let text = HARMLESS.replace('␤', "\n");
    let wrong: Vec<String> = HARMLESS
        .lines()
        .map(|line| line.replace('␤', "\n"))
        .filter(|line| redact(line) != *line)
        .map(|line| format!("{line}\n  {}", redact(&line)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(redact(&text), text);
}

#[test]
fn a_known_value_is_found_in_every_form() {
    let secret = "p\"ä/ s+9&".to_owned() + "Qz";
    let redactor = Redactor::knowing([secret.clone()]);
    let check = |text: &str, expected: &str| assert_eq!(redactor.redact(text), expected, "{text}");
    check(&format!("say {secret}."), "say [redacted].");
    check(&json!({ "x": secret }).to_string(), r#"{"x":"[redacted]"}"#);
    check(r#"{"x":"p\"\u00e4/ s+9\u0026Qz"}"#, r#"{"x":"[redacted]"}"#);
    check("?q=p%22%C3%A4%2F%20s%2B9%26Qz&r", "?q=[redacted]&r");
    check("?q=p%22%c3%a4%2f%20s%2b9%26Qz&r", "?q=[redacted]&r");
    check("?q=p%22%C3%A4%2F+s%2B9%26Qz&r", "?q=[redacted]&r");
    check("?q=p%22%c3%a4%2f+s%2b9%26Qz&r", "?q=[redacted]&r");
    check("?u=p%2522%25C3%25A4%252F%2520s%252B9%2526Qz&r", "?u=[redacted]&r");
    check(r#"{"x":"p\"\u00E4/ s+9\u0026Qz"}"#, r#"{"x":"[redacted]"}"#);
    check("<b>p&quot;ä/ s+9&amp;Qz</b>", "<b>[redacted]</b>");
    // In Latin-1, in a URL and in base64, and in UTF-16 as PowerShell has it.
    check("?q=p%22%E4%2F%20s%2B9%26Qz&r", "?q=[redacted]&r");
    check("cCLkLyBzKzkmUXo=", "[redacted]o=");
    check("cAAiAOQALwAgAHMAKwA5ACYAUQB6AA==", "[redacted]A==");
    check("cCLDpC8gcys5JlF6", BLOT);
    check("eHAiw6QvIHMrOSZReg==", "eH[redacted]g==");
    check("eHlwIsOkLyBzKzkmUXo=", "eHl[redacted]o=");
}

#[test]
fn a_value_that_is_no_ascii_at_all_is_found_in_every_form() {
    let secret = "пароль-秘密-ñandú".to_owned();
    let redactor = Redactor::knowing_surely([], [secret.clone()]);
    let check = |text: &str| assert_eq!(redactor.redact(text), "x=[redacted]", "{text}");
    let encode = |byte: &u8| match byte.is_ascii() {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let upper: String = secret.as_bytes().iter().map(encode).collect();
    check(&format!("x={secret}"));
    check(&format!("x={upper}"));
    check(&format!("x={}", upper.to_lowercase()));
    let escape = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
        _ => format!("\\u{unit:04x}"),
    };
    let units: String = secret.encode_utf16().map(escape).collect();
    check(&format!("x={units}"));
    check("x=0L/QsNGA0L7Qu9GMLeenmOWvhi3DsWFuZMO6");
}

#[test]
fn values_to_be_filled_in_are_nobodys_secret() {
    let values = ["your-secret-key", "changeme", "********", "example-password"];
    let redactor = Redactor::knowing_surely([], values.map(str::to_owned));
    let text = "use your-secret-key, changeme, ******** or example-password";
    assert_eq!(redactor.redact(text), text);
}

#[test]
fn ordinary_values_are_not_blotted_though_they_are_known() {
    let values =
        ["true", "production", "us-east-1", "8080", "/code/app/data", "https://example.org/x"];
    let text = values.join(" ");
    assert_eq!(Redactor::knowing(values.map(str::to_owned)).redact(&text), text);
    let redactor = Redactor::knowing(["postgres://app:s3cr3t-pw@db/app".to_owned()]);
    assert_eq!(redactor.redact("log in with s3cr3t-pw"), "log in with [redacted]");
    assert!(!format!("{redactor:?}").contains("s3cr3t"));
}

#[test]
fn json_keeps_its_keys_and_its_form() {
    let mut value = json!({
        "password": "a", "apiKey": "k1", "client_secret": "<secret>", "max_tokens": 123456,
        "nested": [{ "token": ["t-one1", "t-two2"], "note": "PASSWORD=hunter22 x" }],
        "env": { "name": "API_KEY", "value": "short" }, "pin_password": 12345678,
        "Authorization": "Bearer abc",
    });
    Redactor::default().redact_json(&mut value);
    let expected = json!({
        "password": "a", "apiKey": BLOT, "client_secret": "<secret>", "max_tokens": 123456,
        "nested": [{ "token": [BLOT, BLOT], "note": "PASSWORD=[redacted] x" }],
        "env": { "name": "API_KEY", "value": BLOT }, "pin_password": BLOT,
        "Authorization": "Bearer [redacted]",
    });
    assert_eq!(value, expected);
    let text = r#"{"password": 12345678, "token": -1234567.5e3, "s": "{\"secret\": 12345678}"}"#;
    let expected =
        r#"{"password": "[redacted]", "token": "[redacted]", "s": "{\"secret\": \"[redacted]\"}"}"#;
    assert_eq!(redact(text), expected);
    // A known value across the structure.
    let redactor = Redactor::knowing([r#"abc1","def2"#.to_owned()]);
    let safe = redactor.redact(r#"["abc1","def2"]"#);
    assert!(serde_json::from_str::<Value>(&safe).is_ok(), "{safe}");
    assert!(is_telling("DB_PASSWORD") && !is_telling("max_tokens"));
}

#[test]
fn a_key_that_breaks_off_goes_as_far_as_it_looks_like_one() {
    let whole = pem("RSA ", "\n");
    let (broken, _) = whole.rsplit_once('\n').unwrap();
    assert_eq!(redact(broken), BLOT);
    let text = json!({ "head": broken, "next": "it stays" }).to_string();
    assert_eq!(redact(&text), r#"{"head":"[redacted]","next":"it stays"}"#);
}

/// Beginnings of secrets that lead nowhere, over and over.
const PIECES: [&str; 56] = [
    "token=",
    "token=$",
    "token:\"",
    "password='",
    "\\\"token\\\":\\\"",
    "sk-",
    "sk-a1-",
    "://",
    "a:b@",
    "eyJa.",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN ",
    "\\",
    "\"",
    "token",
    "token: ",
    "<token>",
    "--token ",
    "name: token\n",
    "[redacted]",
    "token=[redacted]",
    "secret ",
    "MTa.",
    "hvs.",
    "%%20",
    "key\": \"value\", ",
    "\u{1b}[3m",
    "curl -u ",
    "curl -u \"",
    "mysql -p",
    "echo ",
    "echo a1b2 | sudo -S ",
    "echo a1b2 | chpasswd ",
    "sudo -S <<< \"",
    "machine a.b ",
    "machine a.b login c password ",
    "a:5432:b:c:",
    "kind: Secret\n",
    "kind: Secret\ndata:\n  a: b\n",
    "\"kind\": \"Secret\", ",
    "\"data\": {\"kind\": \"Secret\", ",
    "auth=(\"a\", ",
    "auth=(auth=(",
    "<password ",
    "<password a=\"b\">",
    "key=\"password\" value=",
    "<key>token</key>",
    "Private-Lines: 1\n",
    "AKIAFAKE23452345FAKE ",
    "0123456789abcdef0123456789abcdef-us",
    "define('token', ",
    "a://b:c/d",
    "http://u:p/p@",
    "openssl pass:",
    "htpasswd -b a b ",
    "docker login -p ",
];

#[test]
#[expect(clippy::disallowed_methods, reason = "the test measures time; the code does not")]
fn the_time_is_linear() {
    const SIZE: usize = 1 << 18;
    for piece in PIECES {
        let text = piece.repeat(SIZE / piece.len());
        let start = Instant::now();
        assert!(!redact(&text).is_empty());
        let time = start.elapsed();
        assert!(time < Duration::from_secs(20), "{piece:?} took {time:?}");
    }
}

/// What texts with secrets in them are made of.
const SIGNS: [&str; 62] = [
    "password",
    "token",
    "API_KEY",
    "--secret",
    "=",
    ":",
    ": ",
    " = ",
    "=>",
    "\"",
    "'",
    "\\\"",
    "\\",
    "\n",
    " ",
    ",",
    "{",
    "}",
    "[",
    "]",
    "(",
    "<",
    ">",
    "</",
    "://",
    "@",
    "$",
    "Bearer ",
    "Authorization",
    "[redacted]",
    "hunter22",
    "correct horse",
    "abcdefgh",
    "12345678",
    "name",
    "value",
    "-",
    "ä",
    ";",
    "&",
    "cookie",
    "`",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "K7nown9Secret",
    "curl",
    " -u ",
    "bob:",
    "mysql -p",
    "echo ",
    " | sudo -S ",
    "<<<",
    "machine a.example login ",
    "kind: Secret\ndata:\n  ",
    "\"kind\":\"Secret\"",
    "\"data\":{",
    "auth=(",
    "<password>",
    "</",
    "key=\"ApiKey\" value=",
    "Private-Lines: 2\n",
    ":5432:",
];

fn pieces() -> impl Strategy<Value = String> {
    let fakes = ["GHP", "JWT", "AKIA", "HOOK", "PW", "DISCORD", "TELEGRAM"].map(fake);
    let all: Vec<String> = SIGNS.map(str::to_owned).into_iter().chain(fakes).collect();
    proptest::collection::vec(proptest::sample::select(all), 0..24).prop_map(|them| them.concat())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        pieces().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((pieces(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn anything_can_be_redacted(text in any::<String>()) {
        prop_assert_eq!(redact(&redact(&text)), redact(&text));
    }

    #[test]
    fn twice_is_once(text in pieces()) {
        let redactor = Redactor::knowing(["K7nown9Secret".to_owned()]);
        let once = redactor.redact(&text);
        prop_assert_eq!(redactor.redact(&once), once.clone());
        prop_assert!(!once.contains("K7nown9Secret"));
    }

    #[test]
    fn json_stays_json(value in json_value()) {
        let mut text = value.to_string();
        for _ in 0..3 {
            let safe = redact(&text);
            prop_assert!(serde_json::from_str::<Value>(&safe).is_ok(), "{text}\n{safe}");
            // The same once more inside a string.
            text = Value::from(text).to_string();
        }
    }

    #[test]
    fn words_stay(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "the", "token", "was", "password", "secret", "in", "src/token.rs", "expired.", "and:", "a", "key", "tokens:",
            "12,500", "e07ea9c2b1f4d3a5968778695a4b3c2d1e0f9a8b", "cp-20260121-001", "(see", "docs)", "\n", "`biv`",
        ]), 0..40))
    {
        let text = words.join(" ");
        prop_assert_eq!(redact(&text), text);
    }
}
