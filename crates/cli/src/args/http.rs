//! The flags of `bellwether run --http`.

use std::path::PathBuf;

use bellwether_agent::Address;
use clap::Args as ClapArgs;

/// Status and metrics over HTTP.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpFlags {
    /// Serve a dashboard, status, health, history, events and metrics over HTTP: at HOST:PORT, at :PORT for this machine only, or on the Unix socket
    /// unix:PATH.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<Address>,

    /// Let clients that send the token in this file ask the leader to step down, and campaign over a network. Without it, HTTP changes
    /// nothing, except that clients on a Unix socket campaign without the token.
    #[arg(long, value_name = "FILE")]
    pub(crate) http_token_file: Option<PathBuf>,

    /// Compete only while a client campaigns (POST /campaign), and step down when the last one has left: for work in another language,
    /// which runs in the client. Without it, the candidate competes with or without clients.
    #[arg(long)]
    pub(crate) for_clients: bool,

    /// Encrypt HTTP with the certificate chain in this PEM file. A renewed certificate counts from the next connection on.
    #[arg(long, value_name = "FILE")]
    pub(crate) http_tls_cert: Option<PathBuf>,

    /// The private key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE")]
    pub(crate) http_tls_key: Option<PathBuf>,
}

/// Health and metrics of a node over HTTP.
#[cfg(feature = "node")]
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct NodeHttpFlags {
    /// Serve /livez, /readyz and /metrics over HTTP: at HOST:PORT, at :PORT for this machine only, or on the Unix socket unix:PATH. Nothing can
    /// be changed there.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<Address>,

    /// Encrypt HTTP with the certificate chain in this PEM file. A renewed certificate counts from the next connection on.
    #[arg(long, value_name = "FILE", requires = "http", requires = "http_tls_key")]
    pub(crate) http_tls_cert: Option<PathBuf>,

    /// The private key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE", requires = "http_tls_cert")]
    pub(crate) http_tls_key: Option<PathBuf>,
}

impl HttpFlags {
    /// What is wrong with the flags together.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        let HttpFlags { http, http_token_file, for_clients, http_tls_cert, http_tls_key } = self;
        let alone = [
            (http_token_file.is_some(), "--http-token-file is for --http, which is missing: add --http ADDR"),
            (*for_clients, "--for-clients is for --http, which is missing: add --http ADDR"),
            (http_tls_cert.is_some(), "--http-tls-cert is for --http, which is missing: add --http ADDR"),
            (http_tls_key.is_some(), "--http-tls-key is for --http, which is missing: add --http ADDR"),
        ];
        if http.is_none() {
            return alone.iter().find(|(is_given, _)| *is_given).map(|(_, sentence)| *sentence);
        }
        if http_tls_cert.is_some() != http_tls_key.is_some() {
            return Some("--http-tls-cert and --http-tls-key go together: give both, or neither");
        }
        None
    }
}

fn address(text: &str) -> Result<Address, String> {
    Address::parse(text).map_err(|error| error.to_string())
}
