//! `--http ADDR`: the candidate over HTTP, by `bellwether-agent`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use bellwether::{Boot, Election, ElectionBuilder, ElectionName, Events, HealthCheck, Metrics, Store};
use bellwether_agent::{
    Agent, ClientGate, Clients, KeptProof, Listener, ProofKeeper, Served, TlsFiles, Token,
};
use bellwether_supervise::ProofKept;

use crate::args::Run;
use crate::exit::{Exit, Failure};

/// A socket that listens, for a candidate that is still to be made.
pub(super) struct Listening {
    listener: Listener,
    metrics: Metrics,
    events: Option<Events>,
    clients: Clients,
}

/// Listens where the flags say, if they say so: before the candidate competes, so that a mistake ends the command at once.
pub(super) fn listen(run: &Run, store: &Store, on: &ElectionName) -> Result<Option<Listening>, Failure> {
    let flags = &run.http;
    let Some(address) = &flags.http else { return Ok(None) };
    let usage = |error: bellwether_agent::AgentError| Failure::new(Exit::Usage, error.to_string());
    let token = flags.http_token_file.as_deref().map(Token::from_file).transpose().map_err(usage)?;
    let tls = match (&flags.http_tls_cert, &flags.http_tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsFiles { certificate: certificate.clone(), key: key.clone() })
        }
        _ => None,
    };
    let listener = Listener::bind(address, token, tls).map_err(usage)?;
    Ok(Some(Listening { listener, metrics: metrics(store, on), events: None, clients: clients(run) }))
}

/// Who does the work: a command, or clients.
fn clients(run: &Run) -> Clients {
    let keeper = Arc::new(KeeperProcess);
    match run.command_line().is_empty() {
        false => Clients::Refused,
        true if run.http.for_clients => Clients::Awaited(keeper, ClientGate::new()),
        true => Clients::Welcome(keeper),
    }
}

/// Keeps the proof that this process lives in a process of its own.
struct KeeperProcess;

struct Kept(ProofKept);

impl ProofKeeper for KeeperProcess {
    fn keep(
        &self,
        proofs: &[OwnedFd],
        client: Option<BorrowedFd<'_>>,
        until: Boot,
    ) -> io::Result<Box<dyn KeptProof>> {
        Ok(Box::new(Kept(ProofKept::start(proofs, client, until)?)))
    }
}

impl KeptProof for Kept {
    fn extend(&self, until: Boot) -> io::Result<()> {
        self.0.extend(until)
    }

    fn release(self: Box<Self>) {
        self.0.release();
    }
}

/// Their label `bucket` is that of the election where it is held in one.
fn metrics(store: &Store, on: &ElectionName) -> Metrics {
    #[cfg(feature = "nats")]
    if let Some(nats) = store.backend_as::<bellwether::nats::Nats>() {
        return Metrics::with_bucket(nats.register().bucket_of(on));
    }
    let _ = (store, on);
    Metrics::new()
}

impl Listening {
    /// The candidate that is to be served, measured.
    pub(super) fn watch(&mut self, builder: ElectionBuilder) -> ElectionBuilder {
        let mut builder = builder.metrics(&self.metrics);
        if let Clients::Awaited(_, gate) = &self.clients {
            let gate = gate.clone();
            // Nobody's check takes longer than a minute.
            let check = HealthCheck::every(ClientGate::INTERVAL).timeout(std::time::Duration::from_secs(60));
            builder = builder.health(check, move || {
                let gate = gate.clone();
                async move { gate.checked().await }
            });
        }
        self.events = Some(builder.subscribe());
        builder
    }

    /// Serves it.
    pub(super) fn serve(self, election: &Election, store: &Store) -> Result<Agent, Failure> {
        let Listening { listener, metrics, events, clients } = self;
        tracing::info!("{}: status and metrics are served on {}", election.name(), listener.shown());
        let events = events.unwrap_or_else(|| election.events());
        let served = Served { election: election.clone(), events, store: store.clone(), metrics, clients };
        listener.serve(served).map_err(|error| {
            let sentence = format!("--http cannot be served here: {}", bellwether_supervise::advised(&error));
            Failure::new(Exit::Unavailable, sentence)
        })
    }
}
