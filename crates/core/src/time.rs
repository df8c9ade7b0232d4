//! Two kinds of time, as two types.
//!
//! [`Boot`] decides; [`Wall`] is for people to read and decides nothing.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant on this machine's boot-time clock, in nanoseconds.
///
/// The clock runs on during suspend and never steps. The `Boot`s of two machines cannot be compared, so none is ever written to a
/// store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot(u64);

impl Boot {
    /// Later than every instant that a clock ever shows.
    pub const FOREVER: Boot = Boot(u64::MAX);

    /// The instant `nanos` nanoseconds after boot.
    pub const fn from_nanos(nanos: u64) -> Boot {
        Boot(nanos)
    }

    /// Nanoseconds since boot.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Boot) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Boot {
    type Output = Boot;
    fn add(self, span: Duration) -> Boot {
        Boot(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Boot {
    type Output = Boot;
    fn sub(self, span: Duration) -> Boot {
        Boot(self.0.saturating_sub(nanos(span)))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A reading of a wall clock, in nanoseconds since 1970 UTC. Shown to people; no decision depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(i64);

impl Wall {
    /// The instant `nanos` nanoseconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_nanos(nanos: i64) -> Wall {
        Wall(nanos)
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub const fn as_unix_nanos(self) -> i64 {
        self.0
    }

    /// Parses RFC 3339, with any offset and up to nine digits of fraction; `None` for anything else.
    pub fn parse(text: &str) -> Option<Wall> {
        parse_rfc3339(text).map(Wall)
    }
}

/// RFC 3339 in UTC with microseconds: `2026-01-31T08:00:00.000000Z`.
impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000_000_000);
        let micros = self.0.rem_euclid(1_000_000_000) / 1_000;
        let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
        let of_day = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

/// A source of time. The crates that decide take it as an argument; only `deadman` reads the system's clocks.
pub trait Clock: Send + Sync + 'static {
    /// The boot-time clock.
    fn boot(&self) -> Boot;
    /// The wall clock, for readers.
    fn wall(&self) -> Wall;
}

/// Days since 1970 to a date of the proleptic Gregorian calendar, counting years from March so that the
/// leap day comes last.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn parse_rfc3339(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !text.is_ascii() {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let part = &bytes[from..to];
        part.iter().all(u8::is_ascii_digit).then(|| part.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
    };
    let literal = |at: usize, any: &[u8]| any.contains(&bytes[at]).then_some(());
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    literal(4, b"-")?;
    literal(7, b"-")?;
    literal(10, b"Tt ")?;
    literal(13, b":")?;
    literal(16, b":")?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut at = 19;
    let mut fraction = 0i64;
    if bytes[at] == b'.' {
        let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return None;
        }
        fraction = number(at + 1, at + 1 + digits)? * 10i64.pow(9 - digits as u32);
        at += 1 + digits;
    }
    let offset = match bytes.get(at)? {
        b'Z' | b'z' if bytes.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if bytes.len() == at + 6 && bytes[at + 3] == b':' => {
            let seconds = number(at + 1, at + 3)? * 3_600 + number(at + 4, at + 6)? * 60;
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_survives_the_way_to_text_and_back() {
        for nanos in [0, 1_000, 951_782_400_000_000_000, 1_709_164_800_123_456_000, 1_794_700_799_999_999_000]
        {
            let wall = Wall::from_unix_nanos(nanos);
            assert_eq!(Wall::parse(&wall.to_string()), Some(wall), "{wall}");
        }
        assert_eq!(Wall::from_unix_nanos(951_782_400_000_000_000).to_string(), "2000-02-29T00:00:00.000000Z");
        assert_eq!(Wall::from_unix_nanos(-1_000).to_string(), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn offsets_and_nanoseconds_are_read() {
        let utc = Wall::parse("2024-01-15T10:30:00Z").unwrap();
        assert_eq!(Wall::parse("2024-01-15T12:00:00.000000000+01:30"), Some(utc));
        assert_eq!(Wall::parse("2024-01-15T10:30:00.000000001Z"), Some(Wall(utc.0 + 1)));
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in [
            "",
            "now",
            "2024-01-15",
            "2024-13-15T10:30:00Z",
            "2024-01-15T10:30:00",
            "2024-01-15T10:30:00.Z",
            "2024-01-15T10:30:00+1",
            "2024-01-15T10:30:0٣Z",
            "9999999999999999999999",
        ] {
            assert_eq!(Wall::parse(text), None, "{text}");
        }
    }

    #[test]
    fn arithmetic_on_boot_time_never_wraps() {
        assert_eq!(Boot::from_nanos(5) - Duration::from_secs(1), Boot::from_nanos(0));
        assert_eq!(Boot::from_nanos(5) + Duration::MAX, Boot::FOREVER);
        assert_eq!(Boot::from_nanos(5).since(Boot::from_nanos(9)), Duration::ZERO);
    }

    #[test]
    fn every_day_of_eight_centuries_has_the_date_after_the_day_before() {
        let days_of = |year: i64, month: i64| match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for days in -135_140..157_054 {
            assert_eq!(civil_from_days(days), (year, month, day));
            assert_eq!(days_from_civil(year, month, day), days);
            day += 1;
            if day > days_of(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (2400, 1, 1));
    }

    #[test]
    fn hours_minutes_and_seconds_have_their_limits() {
        let noon = Wall::parse("2024-01-15T12:00:00Z").unwrap();
        for same in ["2024-01-15t12:00:00z", "2024-01-15 12:00:00Z", "2024-01-15T09:30:00-02:30"] {
            assert_eq!(Wall::parse(same), Some(noon), "{same}");
        }
        let last = Wall::parse("2024-01-15T23:59:59Z").unwrap();
        assert_eq!(last.as_unix_nanos() - noon.as_unix_nanos(), 43_199_000_000_000);
        assert_eq!(last.to_string(), "2024-01-15T23:59:59.000000Z");
        let leap = Wall::parse("2024-01-15T23:59:60Z").unwrap();
        assert_eq!(leap.as_unix_nanos() - last.as_unix_nanos(), 1_000_000_000);
        for text in [
            "2024-01-15T24:00:00Z",
            "2024-01-15T12:60:00Z",
            "2024-01-15T12:00:61Z",
            "2024-00-15T12:00:00Z",
            "2024-01-00T12:00:00Z",
            "2024-01-32T12:00:00Z",
            "2024/01-15T12:00:00Z",
            "2024-01/15T12:00:00Z",
            "2024-01-15_12:00:00Z",
            "2024-01-15T12.00:00Z",
            "2024-01-15T12:00.00Z",
            "2024-01-15T12:00:00.0000000001Z",
            "2024-01-15T12:00:00+01.30",
            "2024-01-15T12:00:00+01:300",
            "2024-01-15T12:00:00ZZ",
        ] {
            assert_eq!(Wall::parse(text), None, "{text}");
        }
    }
}
