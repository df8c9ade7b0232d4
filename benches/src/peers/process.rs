//! One process with candidates of one make, and what it says.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether::{Boot, boot_now};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Make;

/// An event of one candidate, or of the whole process.
#[derive(Debug)]
pub struct Line {
    /// What happened.
    pub event: String,
    /// When.
    pub at: Boot,
    /// Of `called`: how long one call took.
    pub nanos: Option<f64>,
}

/// Killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: UnboundedReceiver<Line>,
    make: String,
}

impl Process {
    pub(super) fn start(make: &Make, verb: &str, flags: &[String]) -> Process {
        Process::spawn(&make.name, make.command(verb, flags))
    }

    /// Runs this command, which speaks the line protocol.
    pub fn spawn(make: &str, mut command: Command) -> Process {
        // What libraries log is for nobody here; what makes one end is.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{make} does not start: {error}"));
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, lines) = unbounded_channel();
        std::thread::spawn(move || {
            let mut read = output.lines().map_while(Result::ok).filter_map(|line| parse(&line));
            read.all(|line| send.send(line).is_ok())
        });
        Process { child, lines, make: make.to_owned() }
    }

    /// Waits for the next line of this event; others before it are dropped.
    pub async fn until(&mut self, event: &str, longest: Duration) -> Line {
        let heard = async {
            loop {
                match self.lines.recv().await {
                    Some(line) if line.event == event => return line,
                    Some(_) => {}
                    None => panic!("{} ended without saying {event}", self.make),
                }
            }
        };
        let heard = tokio::time::timeout(longest, heard).await;
        heard.unwrap_or_else(|_| panic!("{} does not say {event} within {longest:?}", self.make))
    }

    /// As [`Process::until`], so many times; the last of them.
    pub async fn until_all(&mut self, event: &str, count: usize, longest: Duration) -> Line {
        let by = boot_now() + longest;
        let mut last = self.until(event, longest).await;
        for _ in 1..count {
            last = self.until(event, by.since(boot_now())).await;
        }
        last
    }

    /// Asks it to give back what it leads. Returns when that reached it; it ends by itself.
    pub async fn stop(&mut self) -> Boot {
        let status = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(status.expect("there is a kill").success(), "{} is gone", self.make);
        self.until("stopping", Duration::from_secs(10)).await.at
    }

    /// With kill −9; when that was.
    pub fn kill(&mut self) -> Boot {
        let now = boot_now();
        self.child.kill().expect("a child of ours can be killed");
        now
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A library may print what it likes between the lines.
fn parse(line: &str) -> Option<Line> {
    let line: Value = serde_json::from_str(line).ok()?;
    Some(Line {
        event: line["event"].as_str()?.to_owned(),
        at: Boot::from_nanos(line["boot_ns"].as_u64()?),
        nanos: line["nanos"].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_lines_are_read_and_what_libraries_print_is_not() {
        let line = parse(r#"{"event":"started_leading","boot_ns":12,"id":"a-0"}"#).unwrap();
        assert_eq!((line.event.as_str(), line.at), ("started_leading", Boot::from_nanos(12)));
        assert!(parse("2026/11/19 connected").is_none());
        assert!(parse(r#"{"level":"info","boot_ns":12}"#).is_none());
    }
}
