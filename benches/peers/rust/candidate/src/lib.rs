//! What the candidates of other makes in Rust share: the words, the flags and the lines of `benches/peers/candidate`, which is the same in
//! Go. A program gives it the library, and has no measure of its own.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Anything that ends a candidate.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How one make holds elections.
pub trait Library: Copy + Send + Sync + 'static {
    /// What a reader calls it, with its version.
    const NAME: &str;
    /// What the candidates of one connection share.
    type Connection: Clone + Send + Sync + 'static;

    /// Makes what the store needs for this election.
    fn prepare(flags: Flags, election: String) -> impl Future<Output = Result<(), Error>> + Send;

    /// Opens a connection of its own, as another process would have.
    fn connect(flags: Flags) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    /// Competes until it is told to stop, and gives back what it leads.
    fn campaign(
        connection: Self::Connection,
        flags: Flags,
        candidate: Candidate,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// One candidate in one election.
pub struct Candidate {
    /// Which election.
    pub election: String,
    /// Who.
    pub id: String,
    /// Turns true when it has to stop.
    pub stop: watch::Receiver<bool>,
    led: watch::Sender<bool>,
}

impl Candidate {
    /// To be called when a leadership begins, and when it ends; calls that change nothing are no news.
    pub fn leads(&self, leads: bool) {
        let has_changed = self.led.send_if_modified(|led| std::mem::replace(led, leads) != leads);
        if has_changed {
            let event = if leads { "started_leading" } else { "stopped_leading" };
            say(event, json!({ "election": self.election, "id": self.id }));
        }
    }

    /// Waits until it has to stop, or until this time is over; whether it has to.
    pub async fn stops_within(&mut self, span: Duration) -> bool {
        tokio::time::timeout(span, self.stop.wait_for(|stop| *stop)).await.is_ok()
    }
}

/// Flags of the command line, each as `--name=value`.
#[derive(Clone, Debug)]
pub struct Flags(HashMap<String, String>);

impl Flags {
    /// The kubeconfig file and the namespace of `kubernetes://NAMESPACE?kubeconfig=FILE`.
    pub fn cluster(&self) -> Result<(String, String), Error> {
        let url = self.0.get("url").ok_or("--url is missing")?;
        let parts = url.strip_prefix("kubernetes://").and_then(|rest| rest.split_once("?kubeconfig="));
        let (namespace, file) =
            parts.ok_or_else(|| format!("not kubernetes://NAMESPACE?kubeconfig=FILE: {url}"))?;
        Ok((file.split('&').next().unwrap_or_default().to_owned(), namespace.to_owned()))
    }

    /// A time of the command line, or the library's own.
    pub fn time(&self, name: &str, otherwise: Duration) -> Duration {
        let millis = self.0.get(name).and_then(|value| value.strip_suffix("ms")?.parse().ok());
        millis.map_or(otherwise, Duration::from_millis)
    }

    fn text(&self, name: &str, otherwise: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| otherwise.to_owned())
    }

    fn number(&self, name: &str) -> usize {
        self.0.get(name).and_then(|value| value.parse().ok()).unwrap_or(1)
    }
}

/// The whole program.
pub async fn run<L: Library>() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let verb = args.next().unwrap_or_default();
    if verb == "--version" {
        println!("{}", L::NAME);
        return ExitCode::SUCCESS;
    }
    let pair =
        |arg: String| arg.trim_start_matches('-').split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let flags = Flags(args.filter_map(pair).collect());
    let done = match verb.as_str() {
        "prepare" => L::prepare(flags.clone(), flags.text("election", "job")).await,
        "compete" => compete::<L>(flags).await,
        "acquire" => acquire::<L>(flags).await,
        other => Err(format!("there is no `{other}`").into()),
    };
    match done {
        Ok(()) => {
            say("ended", json!({}));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("candidate: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn compete<L: Library>(flags: Flags) -> Result<(), Error> {
    let mut terminated = signal(SignalKind::terminate())?;
    let (tell, stop) = watch::channel(false);
    let (mut campaigns, name, elections) =
        (JoinSet::new(), flags.text("election", "job"), flags.number("elections"));
    for number in 0..flags.number("candidates") {
        let connection = L::connect(flags.clone()).await?;
        for election in 0..elections {
            let election = if elections > 1 { format!("{name}-{election}") } else { name.clone() };
            if elections > 1 {
                L::prepare(flags.clone(), election.clone()).await?;
            }
            let id = format!("{}-{number}", flags.text("id", "a"));
            let candidate = Candidate { election, id, stop: stop.clone(), led: watch::channel(false).0 };
            campaigns.spawn(L::campaign(connection.clone(), flags.clone(), candidate));
        }
    }
    say("campaigning", json!({}));
    tokio::select! {
        _ = terminated.recv() => {}
        // None ends before it is told to, unless it failed.
        Some(ended) = campaigns.join_next() => ended??,
    }
    say("stopping", json!({}));
    tell.send_replace(true);
    while let Some(ended) = campaigns.join_next().await {
        ended??;
    }
    Ok(())
}

/// Leads in elections that nobody else stands in. The first opens what opens late; whoever measures leaves it out.
async fn acquire<L: Library>(flags: Flags) -> Result<(), Error> {
    let connection = L::connect(flags.clone()).await?;
    for round in 0..=flags.number("rounds") {
        let election = format!("{}-{round}", flags.text("election", "job"));
        L::prepare(flags.clone(), election.clone()).await?;
        let ((tell, stop), (led, mut leads)) = (watch::channel(false), watch::channel(false));
        let candidate = Candidate { election, id: flags.text("id", "a"), stop, led };
        say("campaigning", json!({}));
        let campaign = tokio::spawn(L::campaign(connection.clone(), flags.clone(), candidate));
        leads.wait_for(|leads| *leads).await?;
        tell.send_replace(true);
        campaign.await??;
    }
    Ok(())
}

fn say(event: &str, mut line: Value) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    line["event"] = event.into();
    line["boot_ns"] = (now.tv_sec * 1_000_000_000 + now.tv_nsec).into();
    // `println` takes a lock: lines of several threads never mix.
    println!("{line}");
}
