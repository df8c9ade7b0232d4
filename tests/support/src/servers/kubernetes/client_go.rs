//! Candidates of another make: client-go's `leaderelection`, in a process of its own.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bellwether_core::Boot;
use serde_json::Value;

use super::{Server, command, log, missing, programs};
use crate::netns::Node;
use crate::{PATIENCE, Stopped};

/// How a candidate keeps its lease.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// `LeaseDuration`: whole seconds.
    pub lease: Duration,
    /// `RenewDeadline`.
    pub renew: Duration,
    /// `RetryPeriod`.
    pub retry: Duration,
    /// `ReleaseOnCancel`.
    pub release: bool,
}

impl Timing {
    /// What client-go's documentation recommends, with release.
    pub const RECOMMENDED: Timing = Timing {
        lease: Duration::from_secs(15),
        renew: Duration::from_secs(10),
        retry: Duration::from_secs(2),
        release: true,
    };
    /// A fifth of that.
    pub const SHORT: Timing = Timing {
        lease: Duration::from_secs(3),
        renew: Duration::from_secs(2),
        retry: Duration::from_millis(500),
        release: true,
    };

    fn flags(&self) -> [String; 4] {
        let millis = |flag: &str, time: Duration| format!("--{flag}={}ms", time.as_millis());
        [
            millis("lease-duration", self.lease),
            millis("renew-deadline", self.renew),
            millis("retry-period", self.retry),
            format!("--release-on-cancel={}", self.release),
        ]
    }
}

/// A candidate. It stands again after every loss. Killed when dropped.
#[derive(Debug)]
pub struct ClientGo {
    process: Child,
    lines: Receiver<Transition>,
}

/// What a candidate said of itself.
#[derive(Clone, Debug)]
pub struct Transition {
    /// `new_leader`, `started_leading`, `work_ended` (the context of its work is cancelled), `stopped_leading`, or `ended`.
    pub event: String,
    /// When it said so.
    pub at: Boot,
    /// Who leads, of `new_leader`.
    pub leader: Option<String>,
}

impl ClientGo {
    /// Lets a candidate stand for the Lease `name` of that namespace of the server, with this kubeconfig file.
    pub fn start(
        server: &Server,
        kubeconfig: &Path,
        place: (&str, &str),
        id: &str,
        timing: Timing,
    ) -> ClientGo {
        let mut command = ClientGo::command(kubeconfig, place, id, timing, None);
        let logged = log(server.scratch.path(), &format!("client-go-{id}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(logged);
        // Ended with the server, should this program be killed.
        command.process_group(server.group());
        let mut process = command.spawn().expect("the candidate starts");
        let output = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let (send, lines) = channel();
        let mut transitions = output.map_while(Result::ok).map(|line| transition(&line));
        std::thread::spawn(move || transitions.all(|transition| send.send(transition).is_ok()));
        ClientGo { process, lines }
    }

    /// What starts such a candidate, on that machine if one is named. Its transitions are event lines on stdout.
    pub fn command(
        kubeconfig: &Path,
        (namespace, name): (&str, &str),
        id: &str,
        timing: Timing,
        node: Option<&Node>,
    ) -> Command {
        let mut command = command(&built(), node);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["--namespace", namespace, "--name", name, "--id", id]).args(timing.flags());
        command
    }

    /// Waits for the next transition of this kind; others before it are dropped.
    #[track_caller]
    pub fn until(&self, event: &str) -> Transition {
        self.until_within(event, PATIENCE)
    }

    /// As [`ClientGo::until`], which may take so long.
    #[track_caller]
    pub fn until_within(&self, event: &str, longest: Duration) -> Transition {
        loop {
            let next = self.lines.recv_timeout(longest);
            let next = next.unwrap_or_else(|_| panic!("no {event} of client-go within {longest:?}"));
            if next.event == event {
                return next;
            }
        }
    }

    /// All transitions so far that nobody waited for.
    pub fn said(&self) -> Vec<Transition> {
        self.lines.try_iter().collect()
    }

    /// Asks it to end, which releases if the timing says so; it is gone when this returns. The transitions of its end are in
    /// [`ClientGo::said`].
    pub fn cancel(&mut self) {
        let status = Command::new("kill").arg(self.process.id().to_string()).status();
        assert!(status.expect("there is a kill").success(), "the candidate is gone");
        self.process.wait().expect("a child of ours can be waited for");
    }

    /// With kill −9; it is gone when this returns.
    pub fn kill(&mut self) {
        self.process.kill().expect("a child of ours can be killed");
        self.process.wait().expect("a child of ours can be waited for");
    }

    /// Stops it where it is, until the answer is dropped.
    pub fn pause(&self) -> Stopped {
        Stopped::process(self.process.id())
    }

    /// Figures of client-go on this server: `acquire`, `handover`, `requests`, `many` or `is-leader`, with these flags.
    pub fn bench(kubeconfig: &Path, measure: &str, timing: Timing, flags: &[&str]) -> Value {
        let mut command = Command::new(built());
        command.args(["bench", measure]).arg("--kubeconfig").arg(kubeconfig);
        let output = command.args(timing.flags()).args(flags).output().expect("client-go starts");
        let logged = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "client-go bench {measure} failed: {logged}");
        serde_json::from_slice(&output.stdout).expect("one line of JSON")
    }
}

impl Drop for ClientGo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn built() -> PathBuf {
    programs::CLIENT_GO.built().unwrap_or_else(|| missing("client-go"))
}

fn transition(line: &str) -> Transition {
    let line: Value = serde_json::from_str(line).expect("a line of JSON");
    Transition {
        event: line["event"].as_str().expect("an event").to_owned(),
        at: Boot::from_nanos(line["boot_ns"].as_u64().expect("a time")),
        leader: line["leader"].as_str().map(str::to_owned),
    }
}
