//! Phases, lengths of time, numbers of tokens and moments, as these files have them.

use super::entry::at_colon;
use super::inline::{guarded, unescape};
use super::pen::Pen;
use crate::text::Note;
use crate::time::Timestamp;
use crate::work::Phase;

/// `Phase 2 of 5 — delegate: five tasks at once`. A word alone is the name of a phase, several are what it
/// is about; a colon says otherwise.
pub(super) fn write_phase(pen: &Pen<'_>, phase: &Phase) -> String {
    let name = phase.name.as_ref().map(|it| pen.before(it, &[':'])).unwrap_or_default();
    let about = phase.about.as_ref().map(Note::as_str).unwrap_or_default();
    let said = match (name.as_str(), pen.clean(about).is_empty()) {
        ("", true) => String::new(),
        (name, true) if name.contains(' ') => format!("{name}:"),
        (name, true) => name.to_owned(),
        ("", false) => match pen.before(about, &[':']) {
            about if about.contains(' ') => about,
            about => format!(": {about}"),
        },
        (name, false) => format!("{name}: {}", pen.text(about)),
    };
    let prefix = match (phase.number, phase.total) {
        (Some(number), Some(total)) => format!("Phase {number} of {total}"),
        (Some(number), None) => format!("Phase {number}"),
        (None, Some(total)) => format!("Phase ? of {total}"),
        (None, None) if said.to_lowercase().starts_with("phase") => "Phase".to_owned(),
        (None, None) => return guarded(said),
    };
    if said.is_empty() { prefix } else { format!("{prefix} — {said}") }
}

pub(super) fn read_phase(line: &str) -> Phase {
    let line = line.trim();
    let (number, total, said) = numbered(line).unwrap_or((None, None, line));
    let (head, tail) = match at_colon(said) {
        (all, "") if all == said && said.contains(' ') => ("", said),
        parts => parts,
    };
    let (name, about) = (unescape(head.trim()), unescape(tail.trim()));
    Phase {
        name: (!name.is_empty()).then_some(name),
        number,
        total,
        about: (!about.is_empty()).then(|| Note::cut(&about)),
        ..Phase::default()
    }
}

/// The numbers of `Phase 2 of 5 — text`, and the text.
fn numbered(line: &str) -> Option<(Option<u32>, Option<u32>, &str)> {
    let rest = line.get(..5).filter(|it| it.eq_ignore_ascii_case("phase")).map(|_| &line[5..])?;
    let (number, rest) = number(rest.trim_start())?;
    let of = rest.trim_start();
    let of =
        of.strip_prefix('/').or_else(|| of.strip_prefix("of ").or_else(|| of.strip_prefix("OF ")));
    let (total, rest) = match of {
        Some(rest) => self::number(rest.trim_start())?,
        None => (None, rest),
    };
    let rest = rest.trim_start();
    let said = match rest.is_empty() {
        true => rest,
        false => rest.strip_prefix(['—', '–', '-', ':'])?,
    };
    Some((number, total, said.trim()))
}

fn number(text: &str) -> Option<(Option<u32>, &str)> {
    if let Some(rest) = text.strip_prefix('?') {
        return Some((None, rest));
    }
    let rest = text.trim_start_matches(|it: char| it.is_ascii_digit());
    match &text[..text.len() - rest.len()] {
        "" => Some((None, rest)),
        digits => Some((Some(digits.parse().ok()?), rest)),
    }
}

/// Whole minutes, and at least one if there was any time at all.
pub(super) fn minutes(seconds: u64) -> u64 {
    let rounded = seconds / 60 + u64::from(seconds % 60 >= 30);
    if seconds > 0 { rounded.max(1) } else { 0 }
}

/// The seconds that are left when only whole minutes are written.
pub(super) fn rounded_seconds(seconds: u64) -> u64 {
    minutes(seconds).saturating_mul(60)
}

/// Reads `8 min`, `~5 minutes`, `1h 20m` or `1.5 hours`.
pub(super) fn read_seconds(text: &str) -> Option<u64> {
    let mut rest = text.trim().trim_start_matches(['~', '<', '≈', ' ']);
    let mut seconds: u64 = 0;
    let mut is_any = false;
    while !rest.is_empty() {
        let (amount, after) = amount(rest)?;
        let after = after.trim_start();
        let end = after.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = match after[..end].to_ascii_lowercase().as_str() {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            _ => return None,
        };
        seconds = seconds.saturating_add(amount.times(unit));
        rest = after[end..].trim_start_matches(['.', ',', ' ']);
        is_any = true;
    }
    is_any.then_some(seconds)
}

/// A number as people write it.
#[derive(Clone, Copy, Debug)]
struct Amount {
    whole: u64,
    thousandths: u64,
}

impl Amount {
    const fn times(self, unit: u64) -> u64 {
        self.whole.saturating_mul(unit).saturating_add(self.thousandths * unit / 1_000)
    }
}

fn amount(text: &str) -> Option<(Amount, &str)> {
    let is_digit = |it: char| it.is_ascii_digit();
    let rest = text.trim_start_matches(is_digit);
    let whole = text[..text.len() - rest.len()].parse().ok()?;
    let Some(fraction) = rest.strip_prefix('.').filter(|it| it.starts_with(is_digit)) else {
        return Some((Amount { whole, thousandths: 0 }, rest));
    };
    let rest = fraction.trim_start_matches(is_digit);
    let digits: String =
        fraction[..fraction.len() - rest.len()].chars().chain("00".chars()).take(3).collect();
    Some((Amount { whole, thousandths: digits.parse().ok()? }, rest))
}

/// The tokens that are left when only thousands are written.
pub(super) fn rounded_tokens(tokens: u64) -> u64 {
    let thousands = tokens / 1_000;
    let rounded = thousands + u64::from(tokens % 1_000 >= 500);
    match tokens {
        0..1_000 => tokens,
        _ => rounded.checked_mul(1_000).unwrap_or(thousands * 1_000),
    }
}

/// `~20K`.
pub(super) fn write_tokens(tokens: u64) -> String {
    match tokens {
        1..1_000 => format!("~{tokens}"),
        _ => format!("~{}K", rounded_tokens(tokens) / 1_000),
    }
}

/// Reads `~20K`, `2.4k tokens`, `1,200` or `1M`.
pub(super) fn read_tokens(text: &str) -> Option<u64> {
    let text = text.trim().trim_start_matches(['~', '<', '≈', ' ']).replace([',', '_'], "");
    let (amount, rest) = amount(&text)?;
    let rest = rest.trim().to_lowercase();
    let unit = match rest.trim_end_matches("tokens").trim() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        _ => return None,
    };
    Some(amount.times(unit))
}

/// `2026-03-01 14:30`, in UTC.
pub(super) fn write_moment(moment: Timestamp) -> String {
    moment.jiff().strftime("%Y-%m-%d %H:%M").to_string()
}

pub(super) fn read_moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    let local: jiff::civil::DateTime = text.trim_end_matches("UTC").trim_end().parse().ok()?;
    Some(Timestamp::new(local.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Redactor;

    #[test]
    fn phases_are_read_as_people_write_them() {
        let check = |text: &str, name: Option<&str>, numbers: (Option<u32>, Option<u32>), about| {
            let phase = read_phase(text);
            assert_eq!(phase.name.as_deref(), name, "{text}");
            assert_eq!((phase.number, phase.total), numbers, "{text}");
            assert_eq!(phase.about.as_ref().map(Note::as_str), about, "{text}");
        };
        check(
            "Phase 2 of 5 — the tables come next",
            None,
            (Some(2), Some(5)),
            Some("the tables come next"),
        );
        check(
            "Phase 2 of 5 - delegate: five tasks",
            Some("delegate"),
            (Some(2), Some(5)),
            Some("five tasks"),
        );
        check("phase 3: review", Some("review"), (Some(3), None), None);
        check("Phase 1/4", None, (Some(1), Some(4)), None);
        check("delegate", Some("delegate"), (None, None), None);
        check("Phase two is next", None, (None, None), Some("Phase two is next"));
    }

    #[test]
    fn a_phase_is_read_back_whatever_it_says() {
        let redactor = Redactor::default();
        let texts = [
            None,
            Some("delegate"),
            Some("code review"),
            Some("a: b"),
            Some("Phase 2 of 3"),
            Some("x:"),
        ];
        for name in texts {
            for about in texts {
                for (number, total) in
                    [(None, None), (Some(2), Some(5)), (Some(2), None), (None, Some(5))]
                {
                    let phase = Phase {
                        name: name.map(str::to_owned),
                        about: about.map(|it| it.parse().unwrap()),
                        number,
                        total,
                        ..Phase::default()
                    };
                    let line = write_phase(&Pen::new(&redactor), &phase);
                    assert_eq!(read_phase(&line), phase, "{line}");
                }
            }
        }
    }

    #[test]
    fn lengths_of_time_and_tokens_are_read_as_people_write_them() {
        let seconds = |text: &str, expected| assert_eq!(read_seconds(text), expected, "{text}");
        seconds("8 min", Some(480));
        seconds("~5 minutes", Some(300));
        seconds("1h 20m", Some(4_800));
        seconds("1.5 hours", Some(5_400));
        seconds("a while", None);
        seconds("", None);
        let tokens = |text: &str, expected| assert_eq!(read_tokens(text), expected, "{text}");
        tokens("~20K", Some(20_000));
        tokens("2.4k tokens", Some(2_400));
        tokens("1,200", Some(1_200));
        tokens("many", None);
        for number in [0, 1, 29, 95, 1_499, 999_999, u64::MAX] {
            assert_eq!(minutes(rounded_seconds(number)), minutes(number));
            assert_eq!(write_tokens(rounded_tokens(number)), write_tokens(number));
            assert_eq!(read_tokens(&write_tokens(number)), Some(rounded_tokens(number)));
        }
    }

    #[test]
    fn moments_are_read_with_and_without_their_zone() {
        let moment: Timestamp = "2026-03-01T14:30:00Z".parse().unwrap();
        assert_eq!(write_moment(moment), "2026-03-01 14:30");
        for text in ["2026-03-01 14:30", "2026-03-01T14:30:00Z", "2026-03-01 14:30 UTC"] {
            assert_eq!(read_moment(text), Some(moment), "{text}");
        }
        assert_eq!(read_moment("yesterday"), None);
    }
}
