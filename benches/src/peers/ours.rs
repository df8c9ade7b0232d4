//! Candidates of ours as the programs of `benches/peers` have them: the same words and flags, the same lines.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use bellwether::{Election, ElectionBuilder, Store, boot_now};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

/// The first argument of this program when it is a process with candidates.
pub const CANDIDATE: &str = "candidate";

/// Calls between two looks at the clock.
const BATCH: u32 = 1_000_000;

/// What such a process was started for.
#[derive(Debug)]
pub struct Asked {
    verb: String,
    flags: HashMap<String, String>,
}

impl Asked {
    /// Of the arguments of this process, if it is one.
    pub fn of_arguments() -> Option<Asked> {
        let mut args = std::env::args().skip(1);
        (args.next()? == CANDIDATE).then(|| Asked::parse(args))
    }

    fn parse(mut args: impl Iterator<Item = String>) -> Asked {
        let verb = args.next().expect("what to do is the first argument");
        let flag = |arg: String| {
            let (name, value) = arg.trim_start_matches('-').split_once('=').expect("flags have values");
            (name.to_owned(), value.to_owned())
        };
        Asked { verb, flags: args.map(flag).collect() }
    }

    /// Does it, on stores that `open` makes of the URL, each with connections of its own.
    pub async fn run(&self, open: impl Fn(&str) -> Store) {
        let store = || open(&self.flags["url"]);
        match self.verb.as_str() {
            "compete" => self.compete(store).await,
            "acquire" => self.acquire(&store()).await,
            "is-leader" => self.is_leader(&store()).await,
            other => panic!("there is no `{other}`"),
        }
        say("ended", json!({}));
    }

    async fn compete(&self, store: impl Fn() -> Store) {
        let mut terminated = signal(SignalKind::terminate()).expect("signals can be heard");
        let mut all = Vec::new();
        let (name, elections) = (self.text("election"), self.number("elections"));
        for number in 0..self.number("candidates") {
            let store = store();
            for election in 0..elections {
                let on = if elections > 1 { format!("{name}_{election}") } else { name.to_owned() };
                let id = format!("{}-{number}", self.text("id"));
                all.push(self.heard(&store, &on, &id).await);
            }
        }
        say("campaigning", json!({}));
        terminated.recv().await;
        say("stopping", json!({}));
        join_all(all.iter().map(Election::stop)).await;
    }

    /// Leads in elections that nobody else stands in. The first opens what opens late; whoever measures leaves it out.
    async fn acquire(&self, store: &Store) {
        for round in 0..=self.number("rounds") {
            let name = format!("{}_{round}", self.text("election"));
            let builder = self.builder(store, &name, self.text("id"));
            say("campaigning", json!({}));
            let election = builder.start().await.expect("a start");
            election.wait_for_leadership().await.expect("a leadership");
            say("started_leading", json!({}));
            election.stop().await.expect("a release");
        }
    }

    async fn is_leader(&self, store: &Store) {
        let election = self.heard(store, self.text("election"), self.text("id")).await;
        election.wait_for_leadership().await.expect("a leadership");
        for _ in 0..self.number("rounds") {
            let start = boot_now();
            for _ in 0..BATCH {
                assert!(black_box(&election).is_leader(), "the leadership was lost");
            }
            let nanos = boot_now().since(start).as_nanos() as f64 / f64::from(BATCH);
            say("called", json!({ "nanos": nanos }));
        }
        election.stop().await.expect("a release");
    }

    /// A candidate whose leaderships are printed, by its callbacks.
    async fn heard(&self, store: &Store, name: &str, id: &str) -> Election {
        let place = json!({ "election": name, "id": id });
        let over = place.clone();
        let builder = self.builder(store, name, id);
        let builder = builder.on_acquired(move |_| say("started_leading", place.clone()));
        let builder = builder.on_released(move |_| say("stopped_leading", over.clone()));
        builder.start().await.expect("a start")
    }

    fn builder(&self, store: &Store, name: &str, id: &str) -> ElectionBuilder {
        let ttl = self.text("ttl").trim_end_matches("ms").parse().expect("milliseconds");
        Election::builder(name).backend(store.clone()).id(id).ttl(Duration::from_millis(ttl))
    }

    fn text(&self, name: &str) -> &str {
        let otherwise = match name {
            "election" => "job",
            "id" => "a",
            _ => "1",
        };
        self.flags.get(name).map_or(otherwise, String::as_str)
    }

    fn number(&self, name: &str) -> usize {
        self.text(name).parse().expect("a number")
    }
}

fn say(event: &str, mut line: Value) {
    line["event"] = event.into();
    line["boot_ns"] = boot_now().as_nanos().into();
    // `println` takes a lock: lines of several threads never mix.
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_other_makes() {
        let words = ["compete", "--ttl=3000ms", "--candidates=50", "--url=nats://host?create=yes"];
        let asked = Asked::parse(words.map(str::to_owned).into_iter());
        assert_eq!(
            (asked.verb.as_str(), asked.number("candidates"), asked.number("rounds")),
            ("compete", 50, 1)
        );
        assert_eq!((asked.text("url"), asked.text("election")), ("nats://host?create=yes", "job"));
    }
}
