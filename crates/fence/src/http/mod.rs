//! A service over HTTP that handles nothing of an epoch once a later one has asked.
//!
//! A leader sends its epoch and its election with every request, [`stamp`]; [`FenceLayer`] admits it unless a later epoch has asked, and
//! answers in the handler's place if not:
//!
//! | status | when |
//! |---|---|
//! | 428 Precondition Required | a header is missing |
//! | 400 Bad Request | a header is there twice, or is not what [`stamp`] writes |
//! | 409 Conflict | it is another election's: a person has to say which one leads here |
//! | 412 Precondition Failed | a later epoch has asked; the body and the header `Bellwether-Epoch` say which |
//! | 503 Service Unavailable | an earlier epoch's request is still being handled, or the epoch could not be kept; try again |
//!
//! 412 and not 409 for a late epoch: the header states a condition of the request ("no later epoch has written") that is false, and
//! nothing that the client could resolve makes the same request succeed. The body is JSON: `{"error", "election", "epoch", "latest", "message"}`.
//!
//! # Check and effect
//!
//! A check before the handler would leave a gap: the handler may be slow, and its effect come after a later epoch's. So the layer holds the
//! fence while a request is handled. The first request of a later epoch stops earlier ones from beginning at once, then waits until those
//! that have begun are over ([`FenceLayer::wait`], 5 s), keeps the epoch in its store, and only then is handled. Requests of one epoch are
//! handled side by side.
//!
//! A request counts as handled when its handler has returned the response, before the body has been sent, or when it was dropped, as servers do
//! when the client goes away. Work that a handler leaves running must keep the [`Permit`], which is among the request's extensions, until
//! it is over.
//!
//! # What it does not give
//!
//! - **One process**: two copies of the service each hold their own fence. Where several serve the same data, fence the data.
//! - **In memory, a restart forgets** the latest epoch, and a late request may be the first that comes. [`FenceLayer::in_directory`]
//!   keeps it in a [fenced file](crate::file).
//! - **It believes what it is told**: whoever may send requests can send an epoch that nobody has, and refuse everybody below. Authenticate
//!   clients outside this layer.
//! - GET, HEAD, OPTIONS and TRACE pass without a header, since they change nothing; [`FenceLayer::every_method`] asks for it there too.

mod answer;
mod gate;
mod layer;
mod store;

use http::{HeaderMap, HeaderName, HeaderValue};

pub use gate::Permit;
pub use layer::{FenceLayer, FenceService};
#[cfg(feature = "file")]
pub use store::DirectoryStore;
pub use store::{EpochStore, Memory, Raising};

use crate::{Stamp, fields};

/// `bellwether-epoch`, in the lower case of this type.
pub const EPOCH: HeaderName = HeaderName::from_static("bellwether-epoch");
/// `bellwether-election`, in the lower case of this type.
pub const ELECTION: HeaderName = HeaderName::from_static("bellwether-election");

/// Puts epoch and election on a request, in the place of what was there.
///
/// ```
/// use bellwether_core::{ElectionName, Epoch};
/// use bellwether_fence::Stamp;
///
/// # let (election, epoch) = (ElectionName::new("reports").unwrap(), Epoch::new(7).unwrap());
/// let mut request = http::Request::post("/reports").body(()).unwrap();
/// // In a program: Stamp::new(leadership.election(), leadership.epoch())
/// bellwether_fence::http::stamp(request.headers_mut(), &Stamp::new(&election, epoch));
/// assert_eq!(request.headers()["Bellwether-Epoch"], "7");
/// assert_eq!(request.headers()["Bellwether-Election"], "reports");
/// ```
pub fn stamp(headers: &mut HeaderMap, stamp: &Stamp) {
    let (epoch, election) = fields::write(stamp);
    let plain = |text: String| HeaderValue::try_from(text).expect("an encoded stamp is printable ASCII");
    headers.insert(EPOCH, plain(epoch));
    headers.insert(ELECTION, plain(election));
}
