//! What fuzzing asks of the parsers of this crate. Each function takes any bytes, and panics where a promise is broken; `fuzz` has the list.

use std::time::Duration;

use crate::{Boot, Wall, duration};

/// A duration reads the same when it is printed, and what is printed is short.
pub fn duration(bytes: &[u8]) {
    let Some(span) = std::str::from_utf8(bytes).ok().and_then(duration::parse) else { return };
    let printed = duration::print(span);
    assert!(printed.len() <= 32, "{printed}");
    assert_eq!(duration::parse(&printed), Some(span), "{printed}");
    // What somebody else chose is added to instants.
    assert!(Boot::from_nanos(u64::MAX / 2) + span >= Boot::from_nanos(u64::MAX / 2));
    assert!(span <= Duration::from_nanos(i64::MAX as u64));
}

/// A time reads the same to the microsecond when it is printed, and no instant is too far to be printed.
pub fn wall_time(bytes: &[u8]) {
    if let Some(nanos) = bytes.first_chunk().map(|eight| i64::from_le_bytes(*eight)) {
        assert!(Wall::from_unix_nanos(nanos).to_string().len() <= 32, "{nanos}");
    }
    let Some(wall) = std::str::from_utf8(bytes).ok().and_then(Wall::parse) else { return };
    let printed = wall.to_string();
    let below_micros = wall.as_unix_nanos().rem_euclid(1_000);
    assert_eq!(Wall::parse(&printed), Some(Wall::from_unix_nanos(wall.as_unix_nanos() - below_micros)));
}
