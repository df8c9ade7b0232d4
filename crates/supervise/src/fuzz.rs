//! What fuzzing asks of the messages between supervisor, guard and init. The function takes any bytes, and panics where a promise is broken;
//! `fuzz` has the list.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::guard_protocol::{CommandOrder, GuardOrder, GuardReport, MESSAGE_MAX_BYTES, decode, encode};
use crate::init_protocol::{InitOrder, InitReport};

/// One packet, as any of the four may have sent it.
pub fn guard_message(bytes: &[u8]) {
    // A longer packet is cut off on the way, and refused.
    if bytes.len() > MESSAGE_MAX_BYTES {
        return;
    }
    reread::<GuardReport>(bytes);
    reread::<InitOrder>(bytes);
    reread::<InitReport>(bytes);
    reread::<GuardOrder>(bytes);
    if let Some(GuardOrder { what: CommandOrder::Start(start), .. }) = decode(bytes) {
        assert!(
            start
                .address
                .is_none_or(|address| address.to_string().parse().is_ok_and(|again| address == again))
        );
    }
}

/// What can be read can be written, and is read the same again.
fn reread<T: DeserializeOwned + Serialize + Debug + PartialEq>(bytes: &[u8]) {
    let Some(message) = decode::<T>(bytes) else { return };
    if serde_json::to_vec(&message).is_ok_and(|written| written.len() <= MESSAGE_MAX_BYTES) {
        assert_eq!(decode::<T>(&encode(&message)).as_ref(), Some(&message));
    }
}
