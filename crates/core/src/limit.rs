//! When the work can go on: what people ask for, and what agents say about their limits. The time zones
//! are an argument, as the clock is: both are for others to read.

use std::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

use crate::time::{Age, Timestamp};

/// A time zone by its name; without one, the one the person is in.
pub type Zones<'z> = &'z dyn Fn(Option<&str>) -> Option<TimeZone>;

/// No session is paused for longer.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(8 * 86_400);
/// No limit is longer than a month; what says so speaks of something else.
const LONGEST_LIMIT: Duration = Duration::from_secs(32 * 86_400);

/// A time until which nothing can be paused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUntil {
    #[error("`{0}` is no time")]
    NoTime(String),
    #[error("`{0}` is over already")]
    Over(String),
    #[error("`{0}` is more than 8 days ahead")]
    TooFar(String),
}

impl BadUntil {
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoTime(_) => "write it as `14:30`, `2h`, `2026-03-01 14:30` or `reset`",
            Self::Over(_) => "name a time that is still to come, or leave `--until` out",
            Self::TooFar(_) => "leave `--until` out: it is paused until someone takes it up",
        }
    }
}

/// Until when a session is to be paused: a time of day, a length of time, or a full time.
pub fn until(text: &str, now: Timestamp, zones: Zones<'_>) -> Result<Timestamp, BadUntil> {
    let text = text.trim();
    let found = length(text, now)
        .or_else(|| text.parse().ok())
        .or_else(|| at_clock(clock(&[text])?.0, now, &zones(None)?))
        .or_else(|| in_zone(text.parse().ok()?, &zones(None)?));
    let until = found.ok_or_else(|| BadUntil::NoTime(text.to_owned()))?;
    check_until(until, text, now)
}

/// Refuses what is over, and what is too far ahead.
pub fn check_until(until: Timestamp, text: &str, now: Timestamp) -> Result<Timestamp, BadUntil> {
    match until {
        _ if until <= now => Err(BadUntil::Over(text.to_owned())),
        _ if until.since(now) > LONGEST_PAUSE => Err(BadUntil::TooFar(text.to_owned())),
        until => Ok(until),
    }
}

/// When the limit ends that an agent spoke of at some moment. `None` where it spoke of none.
pub fn end_of_limit(text: &str, said_at: Timestamp, zones: Zones<'_>) -> Option<Timestamp> {
    let lower = text.to_lowercase();
    let is_limit = ["limit", "quota", "retry", "try again"].iter().any(|it| lower.contains(it));
    if !is_limit {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let ends = stamped(text).or_else(|| {
        (0..words.len()).find_map(|at| said_after(announced(&words[at..])?, said_at, zones))
    })?;
    (ends > said_at && ends.since(said_at) <= LONGEST_LIMIT).then_some(ends)
}

/// `…limit reached|1749924000`
fn stamped(text: &str) -> Option<Timestamp> {
    text.split('|').skip(1).find_map(|rest| {
        let digits: String = rest.trim().chars().take_while(char::is_ascii_digit).collect();
        let moment = match digits.len() {
            10 => jiff::Timestamp::from_second(digits.parse().ok()?),
            13 => jiff::Timestamp::from_millisecond(digits.parse().ok()?),
            _ => return None,
        };
        moment.ok().map(Timestamp::new)
    })
}

/// What stands behind words that announce a time: `resets …`, `will reset at …`, `try again in …`.
fn announced<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    let (first, rest) = words.split_first()?;
    let first = bare(first).to_lowercase();
    match first.as_str() {
        "reset" | "resets" | "retry" => Some(rest),
        "try" if rest.first().is_some_and(|it| bare(it).eq_ignore_ascii_case("again")) => {
            Some(&rest[1..])
        }
        _ => None,
    }
}

fn said_after(words: &[&str], said_at: Timestamp, zones: Zones<'_>) -> Option<Timestamp> {
    let (first, rest) = words.split_first()?;
    match bare(first).to_lowercase().as_str() {
        "in" | "after" => later(said_at, span(rest)?),
        "at" | "on" => moment(rest, said_at, zones),
        _ => moment(words, said_at, zones),
    }
}

/// `3 hours 42 minutes`, `13h2m32s`, `32.5s`.
fn span(words: &[&str]) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut number: Option<f64> = None;
    for word in words.iter().map(|word| bare(word).to_lowercase()) {
        if word == "and" {
            continue;
        }
        let mut rest = word.as_str();
        let mut is_part = false;
        while !rest.is_empty() {
            let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(rest.len());
            let (digits, behind) = rest.split_at(end);
            let end = behind.find(|it: char| it.is_ascii_digit()).unwrap_or(behind.len());
            let (unit, behind) = behind.split_at(end);
            number = digits.parse().ok().or(number);
            match (number, seconds_in(unit)) {
                (Some(_), None) if unit.is_empty() => is_part = true,
                (Some(count), Some(seconds)) => {
                    total += Duration::try_from_secs_f64(count * seconds).ok()?;
                    number = None;
                    is_part = true;
                }
                _ => return (total > Duration::ZERO).then_some(total),
            }
            rest = behind;
        }
        if !is_part {
            break;
        }
    }
    (total > Duration::ZERO).then_some(total)
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

/// `3pm`, `3:45 PM (America/Santiago)`, `Oct 9, 5pm`, `Nov 8th, 2025 1:23 PM`, `15:00`.
fn moment(words: &[&str], said_at: Timestamp, zones: Zones<'_>) -> Option<Timestamp> {
    if let Some(moment) = words.first().and_then(|word| bare(word).parse().ok()) {
        return Some(moment);
    }
    let mut rest = words;
    let day = day(rest);
    if let Some((_, n_words)) = day {
        rest = &rest[n_words..];
        if rest.first().is_some_and(|word| bare(word).eq_ignore_ascii_case("at")) {
            rest = &rest[1..];
        }
    }
    let (time, n_words) = clock(rest)?;
    let zone = zone_in(rest.get(n_words), zones)?;
    let Some(((month, number, year), _)) = day else {
        return at_clock(time, said_at, &zone);
    };
    let this_year = zone.to_datetime(said_at.jiff()).year();
    let in_year = |year| in_zone(Date::new(year, month, number).ok()?.to_datetime(time), &zone);
    match year {
        Some(year) => in_year(year),
        None => in_year(this_year).filter(|it| *it > said_at).or_else(|| in_year(this_year + 1)),
    }
}

/// Month, day and perhaps year.
type Day = (i8, i8, Option<i16>);

/// A day, and how many words it is.
fn day(words: &[&str]) -> Option<(Day, usize)> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = bare(words.first()?).to_lowercase();
    let month = MONTHS.iter().position(|it| month.starts_with(it))? + 1;
    let number = bare(words.get(1)?).trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let number = number.parse().ok()?;
    let year = words.get(2).and_then(|word| bare(word).parse().ok()).filter(|year| *year > 2000);
    Some(((month as i8, number, year), if year.is_some() { 3 } else { 2 }))
}

/// A time of day, and how many words it is.
fn clock(words: &[&str]) -> Option<(Time, usize)> {
    let word = bare(words.first()?).to_lowercase();
    let next = words.get(1).map(|word| bare(word).to_lowercase()).unwrap_or_default();
    let (digits, half, n_words) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0), 1),
        (_, Some(digits)) => (digits, Some(12), 1),
        _ if next == "am" => (word.as_str(), Some(0), 2),
        _ if next == "pm" => (word.as_str(), Some(12), 2),
        _ => (word.as_str(), None, 1),
    };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour, minute),
        // A bare number is a time only with its half of the day.
        None => (digits, half.map(|_| "0")?),
    };
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + half,
        None => hour,
    };
    Some((Time::new(hour, minute, 0, 0).ok()?, n_words))
}

/// The zone that stands in brackets behind a time, else the person's.
fn zone_in(word: Option<&&str>, zones: Zones<'_>) -> Option<TimeZone> {
    let named = word.and_then(|word| word.trim_start().strip_prefix('('));
    let named = named.map(|word| word.trim_end_matches([')', '.', ',', ';']));
    match named {
        Some(name) => zones(Some(name)).or_else(|| zones(None)),
        None if word.is_some_and(|word| bare(word) == "UTC") => Some(TimeZone::UTC),
        None => zones(None),
    }
}

/// The next moment at which clocks in a zone show a time.
fn at_clock(time: Time, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let today = zone.to_datetime(now.jiff()).date();
    let on = |day: Date| in_zone(day.to_datetime(time), zone);
    on(today).filter(|it| *it > now).or_else(|| on(today.checked_add(1.day()).ok()?))
}

fn in_zone(civil: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    Some(Timestamp::new(civil.to_zoned(zone.clone()).ok()?.timestamp()))
}

fn length(text: &str, now: Timestamp) -> Option<Timestamp> {
    later(now, text.parse::<Age>().ok()?.duration())
}

fn later(now: Timestamp, span: Duration) -> Option<Timestamp> {
    now.jiff().checked_add(span).ok().map(Timestamp::new)
}

/// A word without what is written around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|it: char| !it.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The person is two hours east of Greenwich; Santiago is three hours west of it.
    fn zones(name: Option<&str>) -> Option<TimeZone> {
        let hours = match name {
            None => 2,
            Some("America/Santiago") => -3,
            Some(_) => return None,
        };
        Some(TimeZone::fixed(jiff::tz::offset(hours)))
    }

    fn now() -> Timestamp {
        "2025-10-07T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn limits_end_when_agents_say_so() {
        let check = |text: &str, expected: Option<&str>| {
            let ends = end_of_limit(text, now(), &zones).map(|it| it.jiff().to_string());
            assert_eq!(ends.as_deref(), expected, "{text}");
        };
        check("Claude AI usage limit reached|1759845600", Some("2025-10-07T14:00:00Z"));
        check("5-hour limit reached ∙ resets 3pm", Some("2025-10-07T13:00:00Z"));
        check("You've hit your limit · resets 3:30pm", Some("2025-10-07T13:30:00Z"));
        check("Limit reached · resets 11am", Some("2025-10-08T09:00:00Z"));
        check(
            "Claude usage limit reached. Your limit will reset at 3pm (America/Santiago).",
            Some("2025-10-07T18:00:00Z"),
        );
        check("Your limit will reset at 3pm (Middle/Earth)", Some("2025-10-07T13:00:00Z"));
        check("Weekly limit reached ∙ resets Oct 9, 5pm", Some("2025-10-09T15:00:00Z"));
        check("Weekly limit reached ∙ resets Oct 9 at 5pm", Some("2025-10-09T15:00:00Z"));
        check(
            "You've hit your usage limit. Upgrade to Pro or try again in 3 hours 42 minutes.",
            Some("2025-10-07T13:42:00Z"),
        );
        check("usage limit: try again in 2 days 3 hours", Some("2025-10-09T13:00:00Z"));
        check("You've hit your usage limit. Try again at 3:45 PM.", Some("2025-10-07T13:45:00Z"));
        check(
            "You've hit your usage limit, try again at Oct 11th, 2025 1:23 PM.",
            Some("2025-10-11T11:23:00Z"),
        );
        check(
            "You have exhausted your capacity. Your quota will reset after 13h2m32s.",
            Some("2025-10-07T23:02:32Z"),
        );
        check("Quota exceeded. Please retry in 32.5s.", Some("2025-10-07T10:00:32.5Z"));
        check("Rate limited: please try again in 2 hours.", Some("2025-10-07T12:00:00Z"));
        check("limit reached, resets 2025-10-07T15:00:00Z", Some("2025-10-07T15:00:00Z"));
        check("API Error: overloaded", None);
        check("the counter resets 3pm", None);
        check("there is a limit to everything", None);
        check("Claude AI usage limit reached|1659845600", None);
        check("usage limit: try again in 400 days", None);
        check("usage limit: try again later", None);
    }

    #[test]
    fn a_year_ends_between_two_days() {
        let said_at: Timestamp = "2025-12-31T10:00:00Z".parse().unwrap();
        let ends = end_of_limit("limit reached, resets Jan 2, 5pm", said_at, &zones);
        assert_eq!(ends, Some("2026-01-02T15:00:00Z".parse().unwrap()));
    }

    #[test]
    fn a_pause_ends_at_a_time_that_is_near() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = until(text, now(), &zones).map(|it| it.jiff().to_string());
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        };
        check("14:30", Ok("2025-10-07T12:30:00Z"));
        check("11:59", Ok("2025-10-08T09:59:00Z"));
        check("3pm", Ok("2025-10-07T13:00:00Z"));
        check("2h", Ok("2025-10-07T12:00:00Z"));
        check("2025-10-09 08:00", Ok("2025-10-09T06:00:00Z"));
        check("2025-10-09T08:00:00Z", Ok("2025-10-09T08:00:00Z"));
        check("2025-10-06 08:00", Err("`2025-10-06 08:00` is over already"));
        check("9d", Err("`9d` is more than 8 days ahead"));
        check("lunch", Err("`lunch` is no time"));
        check("25:00", Err("`25:00` is no time"));
        check("15", Err("`15` is no time"));
    }
}
