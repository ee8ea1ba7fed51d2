//! What time it is. `BIV_CLOCK` stops the clock, for runs that must be the same every time; file
//! times are always judged by the real one.

use std::cell::OnceCell;
use std::time::{SystemTime, UNIX_EPOCH};

use bivouac_core::time::Timestamp;
use jiff::tz::TimeZone;
use uuid::Uuid;

use crate::{Error, Result};

pub struct Clock {
    stopped: Option<Timestamp>,
    /// Read when first needed: it costs a millisecond.
    zone: OnceCell<TimeZone>,
}

impl Clock {
    pub fn from_env() -> Result<Self> {
        let stopped = match std::env::var("BIV_CLOCK") {
            Ok(text) => Some(text.parse().map_err(|_| Error::BadClock(text))?),
            Err(_) => None,
        };
        Ok(Self { stopped, zone: OnceCell::new() })
    }

    pub fn now(&self) -> Timestamp {
        self.stopped.unwrap_or_else(|| Timestamp::new(jiff::Timestamp::now()))
    }

    /// A moment where the person is.
    pub fn local(&self, moment: Timestamp) -> jiff::civil::DateTime {
        let zone = self.zone.get_or_init(TimeZone::system);
        zone.to_datetime(moment.jiff())
    }

    /// A moment as people say it: the time, and the day if it is another.
    pub fn in_short(&self, moment: Timestamp) -> String {
        let (then, now) = (self.local(moment), self.local(self.now()));
        let form = if then.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        then.strftime(form).to_string()
    }

    /// A time zone by its name; without one, where the person is.
    pub fn zone(&self, name: Option<&str>) -> Option<TimeZone> {
        match name {
            Some(name) => TimeZone::get(name).ok(),
            None => Some(self.zone.get_or_init(TimeZone::system).clone()),
        }
    }

    /// A moment as people write it, where they are: `2026-03-01 14:30`, or a day, or with its zone.
    pub fn read(&self, text: &str) -> Option<Timestamp> {
        if let Ok(moment) = text.parse() {
            return Some(moment);
        }
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        let zone = self.zone.get_or_init(TimeZone::system);
        Some(Timestamp::new(civil.to_zoned(zone.clone()).ok()?.timestamp()))
    }

    /// A new id, which sorts by the time it was made.
    pub fn new_id(&self) -> Uuid {
        let now = self.now().jiff();
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
        Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
    }

    /// The present in nanoseconds, by the clock that stamps files.
    pub fn file_ns(&self) -> i64 {
        #[expect(clippy::disallowed_methods, reason = "this is the clock")]
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }
}
