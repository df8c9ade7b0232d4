//! `--http ADDR`: the candidate over HTTP, by `bellwether-agent`.

use bellwether::{Election, ElectionBuilder, ElectionName, Events, Metrics, Store};
use bellwether_agent::{Agent, Listener, Served, TlsFiles, Token};

use crate::args::HttpFlags;
use crate::exit::{Exit, Failure};

/// A socket that listens, for a candidate that is still to be made.
pub(super) struct Listening {
    listener: Listener,
    metrics: Metrics,
    events: Option<Events>,
}

/// Listens where the flags say, if they say so: before the candidate competes, so that a mistake ends the command at once.
pub(super) fn listen(
    flags: &HttpFlags,
    store: &Store,
    on: &ElectionName,
) -> Result<Option<Listening>, Failure> {
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
    Ok(Some(Listening { listener, metrics: metrics(store, on), events: None }))
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
        self.events = Some(builder.subscribe());
        builder
    }

    /// Serves it.
    pub(super) fn serve(self, election: &Election, store: &Store) -> Result<Agent, Failure> {
        let Listening { listener, metrics, events } = self;
        tracing::info!("{}: status and metrics are served on {}", election.name(), listener.shown());
        let events = events.unwrap_or_else(|| election.events());
        let served = Served { election: election.clone(), events, store: store.clone(), metrics };
        listener.serve(served).map_err(|error| {
            let sentence = format!("--http cannot be served here: {}", bellwether_supervise::advised(&error));
            Failure::new(Exit::Unavailable, sentence)
        })
    }
}
