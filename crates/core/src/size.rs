//! Numbers of bytes, as people write and read them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `500`, `100MB`, `1.5GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; write it as `500KB`, `100MB` or `2GB`")]
pub struct BadBytes(String);

impl FromStr for Bytes {
    type Err = BadBytes;

    fn from_str(text: &str) -> Result<Self, BadBytes> {
        let bad = || BadBytes(text.to_owned());
        let digits = text.trim().trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = text.trim()[digits.len()..].to_ascii_lowercase();
        let factor: f64 = match unit.as_str() {
            "" | "b" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "t" | "tb" => 1e12,
            "kib" => 1024.0,
            "mib" => 1_048_576.0,
            "gib" => 1_073_741_824.0,
            "tib" => 1_099_511_627_776.0,
            _ => return Err(bad()),
        };
        let count: f64 = digits.trim().parse().map_err(|_| bad())?;
        if !(0.0..1e18).contains(&(count * factor)) {
            return Err(bad());
        }
        Ok(Self((count * factor).round() as u64))
    }
}

/// Three digits and a unit, which is what people compare.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut unit = "B";
        for next in ["KB", "MB", "GB", "TB"] {
            if value < 1_000.0 {
                break;
            }
            value /= 1_000.0;
            unit = next;
        }
        let text = match unit {
            "B" => format!("{value:.0} {unit}"),
            _ if value < 10.0 => format!("{value:.1} {unit}"),
            _ => format!("{value:.0} {unit}"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let check = |text: &str, bytes: Option<u64>| {
            assert_eq!(text.parse().ok(), bytes.map(Bytes), "{text}");
        };
        check("0", Some(0));
        check("100MB", Some(100_000_000));
        check("1.5 GiB", Some(1_610_612_736));
        check("64k", Some(64_000));
        check("-1MB", None);
        check("many", None);
        check("", None);
        check("1e30", None);
    }

    #[test]
    fn sizes_are_said_in_three_digits() {
        let check = |bytes: u64, text: &str| assert_eq!(Bytes(bytes).to_string(), text);
        check(0, "0 B");
        check(999, "999 B");
        check(1_000, "1.0 KB");
        check(48_304_121, "48 MB");
        check(2_500_000_000, "2.5 GB");
    }
}
