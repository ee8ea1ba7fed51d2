//! How much the redactor finds, and how much it takes for a secret that is none: counted over a corpus of
//! forms, each named after the rule of gitleaks it stands for, and a corpus of harmless lines of similar size.
//!
//! `forms.txt` has a rule and a text to a line. What stands between `«` and `»` is the secret; `<kind:length>`
//! in it is filled here with fixed pseudo-random letters, so that no scanner takes the file for a leak. `␤` is a
//! line end. `docs/redaction.md` is written from the result.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bivouac_core::redact::redact;

const FORMS: &str = include_str!("secrets/forms.txt");
const RULES: &str = include_str!("secrets/rules.txt");
const HARMLESS: [&str; 2] =
    [include_str!("secrets/harmless.txt"), include_str!("secrets/ordinary.txt")];
const BLOT: &str = "[redacted]";
/// Forms without a rule in gitleaks.
const OWN: &str = "own:";

/// Letters that look random and are the same every time.
struct Letters(u64);

impl Letters {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) >> 33).expect("31 bits")
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[self.next() % letters.len()]).collect()
    }

    fn fill(&mut self, kind: &str) -> String {
        let (kind, size) = kind.split_once(':').unwrap_or((kind, ""));
        let length = || size.parse().expect("a length");
        let small = "abcdefghijklmnopqrstuvwxyz";
        let big = small.to_uppercase();
        let digits = "0123456789";
        match kind {
            "alnum" => self.of(&[small, &big, digits].concat(), length()),
            "alpha" => self.of(&[small, &big].concat(), length()),
            "lower" => self.of(&[small, digits].concat(), length()),
            "upper" => self.of(&[&big, digits].concat(), length()),
            "digits" => self.of(digits, length()),
            "hex" => self.of("0123456789abcdef", length()),
            "word" => self.of(&[small, &big, digits, "_-"].concat(), length() - 1) + "7",
            "b64" => self.of(&[small, &big, digits, "+/"].concat(), length() - 2) + "5Q",
            "pw" => self.of(&[small, &big, digits, "!#%^*_+.-"].concat(), length() - 3) + "T7x",
            "aws" => self.of(&[small, &big, digits].concat(), 36) + "/x+9",
            "uuid" => {
                let parts = [8, 4, 4, 4, 12].map(|length| self.of("0123456789abcdef", length));
                parts.join("-")
            }
            "login" => base64(format!("bob:{}", self.fill("alnum:11")).as_bytes()),
            "pem" => self.armour(&format!("{size}PRIVATE KEY")),
            "openvpn" => self.armour("OpenVPN Static key V1"),
            other => panic!("no such kind: {other}"),
        }
    }

    fn armour(&mut self, kind: &str) -> String {
        let dashes = "-".repeat(5);
        let lines = [
            format!("{dashes}BEGIN {kind}{dashes}"),
            self.fill("alnum:64"),
            self.fill("alnum:40"),
            format!("{dashes}END {kind}{dashes}"),
        ];
        lines.join("\n")
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for n in 0..4 {
            let letter = char::from(LETTERS[bits >> (18 - 6 * n) & 63]);
            text.push(if n <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

struct Form {
    rule: &'static str,
    text: String,
    expected: String,
}

fn forms() -> Vec<Form> {
    let parse = |(number, line): (usize, &'static str)| {
        let (rule, form) = line.split_once('\t').expect("a rule and a form");
        let mut letters = Letters(number as u64);
        let (mut text, mut expected) = (String::new(), String::new());
        for piece in form.replace('␤', "\n").split_inclusive(['«', '»']) {
            match piece.strip_suffix('»') {
                Some(secret) => {
                    text += &filled(secret, &mut letters);
                    expected += BLOT;
                }
                None => {
                    let plain = piece.trim_end_matches('«');
                    text += plain;
                    expected += plain;
                }
            }
        }
        Form { rule, text, expected }
    };
    FORMS.lines().enumerate().map(parse).collect()
}

fn filled(secret: &str, letters: &mut Letters) -> String {
    let mut text = String::new();
    let mut rest = secret;
    while let Some((plain, after)) = rest.split_once('<') {
        let (kind, after) = after.split_once('>').expect("a closed blank");
        text += plain;
        text += &letters.fill(kind);
        rest = after;
    }
    text + rest
}

fn harmless() -> Vec<String> {
    let lines = HARMLESS.iter().flat_map(|file| file.lines());
    lines.map(|line| line.replace('␤', "\n")).collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are what the test is for")]
fn every_form_is_caught_and_no_harmless_line_is_touched() {
    let forms = forms();
    let harmless = harmless();
    let missed: Vec<String> = forms
        .iter()
        .filter(|form| redact(&form.text) != form.expected)
        .map(|form| format!("{}: {}\n    {}", form.rule, form.text, redact(&form.text)))
        .collect();
    let alarms: Vec<String> = harmless
        .iter()
        .filter(|line| redact(line) != **line)
        .map(|line| format!("{line}\n    {}", redact(line)))
        .collect();
    let said = format!(
        "{} of {} forms caught, {} false alarms of {} harmless lines",
        forms.len() - missed.len(),
        forms.len(),
        alarms.len(),
        harmless.len()
    );
    eprintln!("{said}");
    let wrong = [missed, alarms].concat();
    assert!(wrong.is_empty(), "{said}\n{}", wrong.join("\n"));
    assert!(forms.len() >= 300 && harmless.len() >= 300, "{said}");
    // All harmless lines at once: what stands beside a line changes nothing.
    let all = harmless.join("\n");
    assert_eq!(redact(&all), all);
}

#[test]
fn the_document_says_what_the_corpus_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/redaction.md");
    let expected = document();
    if option_env!("BIV_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    let remedy = "run `BIV_WRITE_DOCS=1 cargo test -p bivouac-core --test secrets_corpus` and look at the change";
    assert!(written == expected, "docs/redaction.md is out of date: {remedy}");
}

fn document() -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    forms().iter().for_each(|form| *counts.entry(form.rule).or_default() += 1);
    let names: BTreeSet<&str> = counts.keys().copied().collect();
    let (own, covered): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| name.starts_with(OWN));
    let rules: Vec<(&str, Option<&str>)> = RULES
        .lines()
        .map(|line| line.split_once('\t').map_or((line, None), |(name, why)| (name, Some(why))))
        .collect();
    for name in &covered {
        assert!(rules.iter().any(|(rule, _)| rule == name), "gitleaks has no rule `{name}`");
    }
    for (rule, why) in &rules {
        let is_covered = covered.contains(rule);
        assert!(is_covered != why.is_some(), "`{rule}` needs a form or a reason, not both");
    }
    let mut text = format!(
        "# What the redactor finds\n\n\
         Written by `crates/core/tests/secrets_corpus.rs`. The test holds these figures: {} of {} forms of secrets caught, \
         {} false alarms of {} harmless lines (lock files, digests, UUIDs, source code, prose, base64 images, commands).\n\n\
         The forms are made up; each is named after the rule of [gitleaks](https://github.com/gitleaks/gitleaks) it stands \
         for. {} of the {} rules in its default configuration (July 2026) have a form here. A form shows that the \
         redactor finds this kind of secret where people usually write it; it is not the rule itself. Many rules of \
         gitleaks look for the name of a provider beside the value. The redactor looks for a name that \
         says what the value is (`DATADOG_API_KEY`, not `datadog`), a shape, or a known value.\n\n\
         The corpus was written together with the redactor, and the redactor was changed until it caught every form. So \
         the figures say what is covered and stays covered; they are no estimate for secrets that nobody thought of.\n\n\
         Beside this, the redactor knows the values of every captured `.env` file, in their raw, JSON, URL, HTML and base64 \
         forms.\n\n## Rules with a form\n\n| rule | forms |\n|---|---|\n",
        forms().iter().filter(|form| redact(&form.text) == form.expected).count(),
        forms().len(),
        harmless().iter().filter(|line| redact(line) != **line).count(),
        harmless().len(),
        covered.len(),
        rules.len(),
    );
    text.extend(covered.iter().map(|name| format!("| {name} | {} |\n", counts[name])));
    text += "\n## Rules without a form\n\n| rule | why |\n|---|---|\n";
    let without = rules.iter().filter_map(|(rule, why)| Some((rule, (*why)?)));
    text.extend(without.map(|(rule, why)| format!("| {rule} | {why} |\n")));
    text += "\n## Forms that gitleaks has no rule for\n\n| form | forms |\n|---|---|\n";
    let own = own.iter().map(|name| (name.trim_start_matches(OWN), counts[name]));
    text.extend(own.map(|(name, n)| format!("| {name} | {n} |\n")));
    text
}
