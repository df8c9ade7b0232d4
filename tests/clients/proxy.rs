//! Something between a client and its agent: it passes everything on, until it is asked to hold one answer back.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use bellwether_tests::PATIENCE;

/// A Unix socket that leads to another one.
pub(crate) struct Proxy(Arc<Inner>);

/// What becomes of all that a client sends after the request whose answer is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It passes.
    Open,
    /// It is dropped, and its connection closed.
    Cut,
}

struct Inner {
    agent: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    now: Then,
    /// The answer to the next request for more time is to be held.
    hold_next: Option<Then>,
    /// An answer is held.
    is_held: bool,
    /// Requests for more time that have passed.
    asked: u64,
}

impl Proxy {
    /// Listens at `near`. Its threads end with the test.
    pub(crate) fn start(near: &Path, agent: &Path) -> Proxy {
        let listener = UnixListener::bind(near).expect("our own directory");
        let state = State { now: Then::Open, hold_next: None, is_held: false, asked: 0 };
        let inner =
            Arc::new(Inner { agent: agent.to_owned(), state: Mutex::new(state), changed: Condvar::new() });
        let proxy = Proxy(Arc::clone(&inner));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // One that the agent does not take is closed.
                if let Ok(agent) = UnixStream::connect(&inner.agent) {
                    inner.pass(client, agent);
                }
            }
        });
        proxy
    }

    /// Holds the answer to the client's next request for more time. Returns when that request has passed.
    pub(crate) fn hold_next_answer(&self, then: Then) {
        self.0.state().hold_next = Some(then);
        self.wait_for(|state| state.is_held, "the client does not ask again");
    }

    /// Passes the answer on that is held.
    pub(crate) fn pass_on(&self) {
        self.0.state().is_held = false;
        self.0.changed.notify_all();
    }

    /// Waits until the client asks once more: it has read the answer before to its end.
    pub(crate) fn until_asked_again(&self) {
        let asked = self.0.state().asked;
        self.wait_for(|state| state.asked > asked, "the client does not ask again");
    }

    fn wait_for(&self, what: impl Fn(&State) -> bool, or: &str) {
        let waiting = self.0.changed.wait_timeout_while(self.0.state(), PATIENCE, |state| !what(state));
        let (_state, timeout) = waiting.expect("no panic");
        assert!(!timeout.timed_out(), "{or}, after {PATIENCE:?}");
    }
}

impl Inner {
    fn pass(self: &Arc<Inner>, client: UnixStream, agent: UnixStream) {
        let is_late = Arc::new(AtomicBool::new(false));
        let ours = (Arc::clone(self), Arc::clone(&is_late));
        let (from, to) =
            (client.try_clone().expect("a descriptor"), agent.try_clone().expect("a descriptor"));
        thread::spawn(move || forward(from, to, |bytes| ours.0.lets_pass(bytes, &ours.1)));
        let inner = Arc::clone(self);
        thread::spawn(move || {
            forward(agent, client, |_| {
                if is_late.load(Ordering::SeqCst) {
                    let waiting = inner.changed.wait_while(inner.state(), |state| state.is_held);
                    drop(waiting.expect("no panic"));
                }
                true
            });
        });
    }

    /// Whether these bytes of a client may pass, and whether their answer is held.
    fn lets_pass(&self, bytes: &[u8], is_late: &AtomicBool) -> bool {
        let mut state = self.state();
        if state.now == Then::Cut {
            return false;
        }
        if bytes.starts_with(b"POST /campaign/") {
            state.asked += 1;
            if let Some(then) = state.hold_next.take() {
                (state.now, state.is_held) = (then, true);
                is_late.store(true, Ordering::SeqCst);
            }
            self.changed.notify_all();
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }
}

/// Passes bytes on until one side closes, or they may not pass.
fn forward(mut from: UnixStream, mut to: UnixStream, mut may_pass: impl FnMut(&[u8]) -> bool) {
    let mut bytes = [0; 4_096];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 || !may_pass(&bytes[..count]) || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
