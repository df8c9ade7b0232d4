//! Something between a client and its agent: it passes everything on, until it is asked to delay one answer and to cut the connection.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_tests::PATIENCE;

/// A Unix socket that leads to another one.
pub(crate) struct Proxy(Arc<Inner>);

struct Inner {
    agent: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy)]
enum State {
    Open,
    /// The next request for more time is the last that passes, and its answer is late.
    Delaying(Duration),
    Cut,
}

impl Proxy {
    /// Listens at `near`. Its threads end with the test.
    pub(crate) fn start(near: &Path, agent: &Path) -> Proxy {
        let listener = UnixListener::bind(near).expect("our own directory");
        let inner =
            Inner { agent: agent.to_owned(), state: Mutex::new(State::Open), changed: Condvar::new() };
        let inner = Arc::new(inner);
        let proxy = Proxy(Arc::clone(&inner));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // What the agent does not take, the client is refused.
                if let Ok(agent) = inner.connect() {
                    inner.pass(client, agent);
                }
            }
        });
        proxy
    }

    /// Delays the answer to the next request for more time, and lets nothing else pass from that request on. Returns when it has passed.
    pub(crate) fn delay_next_answer_and_cut(&self, late: Duration) {
        let mut state = self.0.state.lock().expect("no panic");
        *state = State::Delaying(late);
        let is_waiting = |state: &mut State| !matches!(state, State::Cut);
        let (_state, timeout) =
            self.0.changed.wait_timeout_while(state, PATIENCE, is_waiting).expect("no panic");
        assert!(!timeout.timed_out(), "the client does not ask again");
    }
}

impl Inner {
    fn connect(&self) -> std::io::Result<UnixStream> {
        if matches!(*self.state.lock().expect("no panic"), State::Cut) {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        UnixStream::connect(&self.agent)
    }

    fn pass(self: &Arc<Inner>, client: UnixStream, agent: UnixStream) {
        let late = Arc::new(Mutex::new(None));
        let (inner, held) = (Arc::clone(self), Arc::clone(&late));
        let (from, to) =
            (client.try_clone().expect("a descriptor"), agent.try_clone().expect("a descriptor"));
        thread::spawn(move || forward(from, to, |bytes| inner.lets_pass(bytes, &held)));
        thread::spawn(move || {
            forward(agent, client, |_| {
                let until: Option<Boot> = *late.lock().expect("no panic");
                thread::sleep(until.map_or(Duration::ZERO, |until| until.since(boot_now())));
                true
            });
        });
    }

    /// Whether these bytes of a client may pass; until when their answer is held, if it is.
    fn lets_pass(&self, bytes: &[u8], held: &Mutex<Option<Boot>>) -> bool {
        let mut state = self.state.lock().expect("no panic");
        match *state {
            State::Open => true,
            State::Delaying(late) => {
                if bytes.starts_with(b"POST /campaign/") {
                    *held.lock().expect("no panic") = Some(boot_now() + late);
                    *state = State::Cut;
                    self.changed.notify_all();
                }
                true
            }
            State::Cut => false,
        }
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
