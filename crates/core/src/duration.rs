//! Durations as people write them: `10s`, `1m30s`, `1.5s`, `500ms`, `1h0m0s`.
//!
//! The syntax is that of Go, with the same limit: signed 64-bit nanoseconds, some 292 years. No text makes it panic. A sign is
//! accepted, but only zero may be negative. The caller decides which lengths make sense.

use std::time::Duration;

/// The longest duration that the syntax can express, in nanoseconds.
const MAX_NANOS: u128 = i64::MAX as u128;
/// The longest text that is parsed; no printed duration comes near it.
const MAX_BYTES: usize = 64;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5, micro sign
    ("μs", 1_000), // U+03BC, Greek mu
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration; `None` for anything else.
pub fn parse(text: &str) -> Option<Duration> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        nanos = nanos.checked_add(scaled(whole, fraction, scale)?)?;
        if nanos > MAX_NANOS {
            return None;
        }
        rest = next;
    }
    if negative && nanos > 0 {
        return None;
    }
    Some(from_nanos(nanos))
}

/// Prints a duration so that [`parse`] reads the same. A longer one than the syntax can express is printed as the longest.
pub fn print(duration: Duration) -> String {
    let nanos = duration.as_nanos().min(MAX_NANOS);
    if nanos == 0 {
        return "0s".to_owned();
    }
    if nanos < 1_000_000_000 {
        let (scale, unit) = match nanos {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{}{unit}", decimal(nanos, scale));
    }
    let (minutes, below) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
    let seconds = decimal(below, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `whole.fraction × scale`, in nanoseconds, digits below one nanosecond cut off.
fn scaled(whole: &str, fraction: &str, scale: u64) -> Option<u128> {
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(u128::from(scale))?;
    // 18 digits are more than any unit has nanoseconds, so the rest cannot matter.
    let fraction = &fraction[..fraction.len().min(18)];
    if !fraction.is_empty() {
        let parts: u128 = fraction.parse().ok()?;
        nanos = nanos.checked_add(parts * u128::from(scale) / 10u128.pow(fraction.len() as u32))?;
    }
    Some(nanos)
}

fn decimal(nanos: u128, scale: u128) -> String {
    let (whole, part) = (nanos / scale, nanos % scale);
    if part == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    format!("{whole}.{part:0width$}").trim_end_matches('0').to_owned()
}

fn from_nanos(nanos: u128) -> Duration {
    Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_that_records_use() {
        for (text, millis) in [
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("500ms", 500),
            ("1h0m0s", 3_600_000),
            (".5s", 500),
            ("1.s", 1_000),
            ("+2s", 2_000),
            ("0", 0),
            ("-0s", 0),
            ("15000000us", 15_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "10", "s", ".s", ".", "-1s", "1 s", "10S", "1d", "1s2", "+", "++1s", "٣s", "1e3s"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("99999999999999999999h"), None);
        assert_eq!(parse(&"9".repeat(1_000_000)), None);
        assert_eq!(parse("2562047h47m16.854775807s"), Some(from_nanos(MAX_NANOS)));
        assert_eq!(parse("2562047h47m16.854775808s"), None);
    }

    #[test]
    fn printed_as_others_print_it() {
        for (millis, text) in [
            (10_000, "10s"),
            (90_000, "1m30s"),
            (1_500, "1.5s"),
            (500, "500ms"),
            (3_600_000, "1h0m0s"),
            (0, "0s"),
        ] {
            assert_eq!(print(Duration::from_millis(millis)), text);
        }
        assert_eq!(print(Duration::from_nanos(1_100)), "1.1µs");
        assert_eq!(print(Duration::MAX), "2562047h47m16.854775807s");
    }

    /// A small generator of our own: the same numbers on every run.
    fn numbers() -> impl Iterator<Item = u64> {
        std::iter::successors(Some(0x9e37_79b9_7f4a_7c15_u64), |x| {
            let x = x ^ (x << 13);
            let x = x ^ (x >> 7);
            Some(x ^ (x << 17))
        })
    }

    #[test]
    fn what_was_printed_is_read_back_exactly() {
        for (at, number) in numbers().take(20_000).enumerate() {
            let duration = from_nanos(u128::from(number >> (1 + at % 63)));
            assert_eq!(parse(&print(duration)), Some(duration), "{duration:?}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let alphabet: Vec<char> = "0123456789.+-hmsnuµμ \u{0}é9999".chars().collect();
        let mut random = numbers();
        for _ in 0..50_000 {
            let length = (random.next().unwrap() % 24) as usize;
            let text: String =
                random.by_ref().take(length).map(|n| alphabet[(n >> 20) as usize % alphabet.len()]).collect();
            if let Some(duration) = parse(&text) {
                assert_eq!(parse(&print(duration)), Some(duration), "{text}");
            }
        }
    }

    #[test]
    fn each_unit_begins_where_the_one_below_it_ends() {
        for (nanos, text) in [
            (1, "1ns"),
            (999, "999ns"),
            (1_000, "1µs"),
            (999_999, "999.999µs"),
            (1_000_000, "1ms"),
            (999_999_999, "999.999999ms"),
            (1_000_000_000, "1s"),
            (59_999_999_999, "59.999999999s"),
            (60_000_000_000, "1m0s"),
            (3_599_000_000_000, "59m59s"),
            (3_600_000_000_000, "1h0m0s"),
            (7_325_500_000_000, "2h2m5.5s"),
        ] {
            assert_eq!(print(Duration::from_nanos(nanos)), text);
            assert_eq!(parse(text), Some(Duration::from_nanos(nanos)));
        }
        for (text, nanos) in
            [("1us", 1_000), ("1μs", 1_000), ("0.0000000019s", 1), ("1.0000000000000000009s", 1_000_000_000)]
        {
            assert_eq!(parse(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn a_text_of_64_bytes_is_read_and_a_longer_one_is_not() {
        let text = |zeros: usize| format!("{}1s", "0".repeat(zeros));
        assert_eq!(parse(&text(62)), Some(Duration::from_secs(1)));
        assert_eq!(parse(&text(63)), None);
    }
}
