//! The answer to a request of a client that campaigns: lines of JSON, the first at once, one at every change, until it has to ask again.
//!
//! A line that waits to be read does not grow wrong: what it says counts from the request.

use axum::body::Bytes;
use bellwether_core::Boot;
use bellwether_deadman::{BootTimer, boot_now};
use bellwether_election::Standings;
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::entry::{Attached, Place};
use super::{Pace, wake};

/// One answer, while it is written.
struct Answering {
    attached: Attached,
    heard: Boot,
    pace: Pace,
    place: watch::Receiver<Place>,
    standing: Option<Standings>,
    timer: Option<BootTimer>,
    is_first: bool,
    _room: OwnedSemaphorePermit,
}

/// The lines that answer a request which was received at `heard`.
pub(crate) fn lines(
    attached: Attached,
    heard: Boot,
    pace: Pace,
    room: OwnedSemaphorePermit,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let place = attached.entry.place();
    let timer = BootTimer::new().ok();
    let answering =
        Answering { attached, heard, pace, place, standing: None, timer, is_first: true, _room: room };
    stream::unfold(answering, |mut answering| async { Some((answering.next().await?, answering)) })
}

impl Answering {
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::take(&mut self.is_first) && !self.changed().await {
            return None;
        }
        let place = self.place.borrow_and_update().clone();
        self.standing = match &place {
            // Seen before the line is made, so that a change after it makes another.
            Place::Leading(told) => Some(seen(told.standing())),
            Place::Waiting | Place::Silent(_) => None,
            Place::Gone => return None,
        };
        let line = self.attached.entry.line(&place, self.heard, self.pace);
        Some(Bytes::from(format!("{line}\n")))
    }

    /// Whether there is something new to say before the client has to ask again.
    async fn changed(&mut self) -> bool {
        let until = self.heard + self.pace.again;
        let over = async {
            while boot_now() < until {
                wake(self.timer.as_mut(), until).await;
            }
        };
        let moved = async {
            match &mut self.standing {
                Some(standing) => standing.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => false,
            changed = self.place.changed() => changed.is_ok(),
            () = moved => true,
        }
    }
}

fn seen(mut standing: Standings) -> Standings {
    let _ = standing.now();
    standing
}
