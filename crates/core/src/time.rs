//! Moments and ages. The clock itself is an argument: `engine::clock` reads it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment, to the millisecond, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Keeps milliseconds and drops the rest, so that a stored moment equals the one it was read back as.
    pub fn new(moment: jiff::Timestamp) -> Self {
        let whole = jiff::Timestamp::from_millisecond(moment.as_millisecond());
        Self(whole.expect("a timestamp without its sub-millisecond part is still in range"))
    }

    pub const fn jiff(self) -> jiff::Timestamp {
        self.0
    }

    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// How long ago `earlier` was; nothing when the clock went backwards.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.as_millis().saturating_sub(earlier.as_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        text.parse().map(Self::new)
    }
}

/// A length of time as people write it: `30s`, `15m`, `24h`, `7d`, `2w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(Duration);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a length of time; write it as `30s`, `15m`, `24h`, `7d` or `2w`")]
pub struct BadAge(String);

impl Age {
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Age {
    type Err = BadAge;

    fn from_str(text: &str) -> Result<Self, BadAge> {
        let bad = || BadAge(text.to_owned());
        let end = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(bad)?;
        let (digits, unit) = text.split_at(end);
        let seconds_per_unit = match unit.trim() {
            "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 604_800,
            _ => return Err(bad()),
        };
        let count: u64 = digits.parse().map_err(|_| bad())?;
        let seconds = count.checked_mul(seconds_per_unit).ok_or_else(bad)?;
        Ok(Self(Duration::from_secs(seconds)))
    }
}

/// A length of time that someone chose, in the largest unit up to hours that says it exactly:
/// `24 hours`, `90 minutes`, `3 days`.
pub fn exactly_in_words(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [(86_400, "day", 3 * 86_400), (3_600, "hour", 3_600), (60, "minute", 60)];
    let fits =
        |(size, _, least): &(u64, &str, u64)| seconds >= *least && seconds.is_multiple_of(*size);
    let (size, unit, _) = units.into_iter().find(fits).unwrap_or((1, "second", 0));
    let count = seconds / size;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// The largest unit that says it: `5 minutes`, `1 hour`, `3 days`.
pub fn in_words(span: Duration) -> String {
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_as_people_write_them() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(
                text.parse::<Age>().ok().map(|age| age.duration().as_secs()),
                seconds,
                "{text}"
            );
        };
        check("30s", Some(30));
        check("15m", Some(900));
        check("7d", Some(604_800));
        check("2w", Some(1_209_600));
        check("7", None);
        check("d", None);
        check("", None);
        check("-3d", None);
        check("8 min", Some(480));
        check("7 years", None);
        check("99999999999999999999d", None);
        check("7é", None);
    }

    #[test]
    fn a_clock_that_went_backwards_makes_nothing_old() {
        let early: Timestamp = "2026-01-21T14:30:00Z".parse().unwrap();
        let late: Timestamp = "2026-01-21T14:45:00Z".parse().unwrap();
        assert_eq!(late.since(early), Duration::from_secs(900));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn a_timestamp_survives_its_text_form() {
        let moment: Timestamp = "2026-01-21T14:30:00.123456Z".parse().unwrap();
        assert_eq!(moment.to_string(), "2026-01-21T14:30:00.123Z");
        assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
    }

    #[test]
    fn spans_are_said_in_their_largest_unit() {
        assert_eq!(in_words(Duration::from_secs(1)), "1 second");
        assert_eq!(in_words(Duration::from_secs(300)), "5 minutes");
        assert_eq!(in_words(Duration::from_secs(7_300)), "2 hours");
        assert_eq!(in_words(Duration::from_secs(90_000)), "1 day");
        assert_eq!(exactly_in_words(Duration::from_secs(86_400)), "24 hours");
        assert_eq!(exactly_in_words(Duration::from_secs(5_400)), "90 minutes");
        assert_eq!(exactly_in_words(Duration::from_secs(61)), "61 seconds");
        assert_eq!(exactly_in_words(Duration::from_secs(604_800)), "7 days");
    }
}
