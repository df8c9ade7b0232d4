//! In place of `tls`, in builds without it: nothing is encrypted, and who asks for it is told so.

use bellwether_core::{ErrorKind, StoreError};
use tokio_postgres::NoTls;
pub(crate) use tokio_postgres::tls::NoTlsStream as Encrypted;

use crate::Config;
use crate::config::Verify;
use crate::errors::BACKEND;

/// Nothing to remember.
#[derive(Clone, Debug)]
pub(crate) struct Tls;

impl Tls {
    pub(crate) fn new(asked: &crate::config::Ssl) -> Result<Tls, StoreError> {
        if asked.verify == Verify::Nothing && !asked.required && asked.root.is_none() && asked.own.is_none() {
            return Ok(Tls);
        }
        let sentence = "TLS is asked for (sslmode, sslrootcert, sslcert), and this build cannot encrypt: build it with the \
                        feature tls, or use sslmode=disable on a network that you trust";
        Err(StoreError::new(ErrorKind::Unsupported, BACKEND, sentence))
    }

    pub(crate) fn connector(&self, _: &Config, _: usize) -> Result<Connector, StoreError> {
        Ok(Connector)
    }
}

/// Encrypts nothing.
#[derive(Clone, Copy)]
pub(crate) struct Connector;

impl Connector {
    pub(crate) fn driver(&self) -> NoTls {
        NoTls
    }

    pub(crate) fn has_failed(&self) -> bool {
        false
    }

    pub(crate) fn meaning(&self, error: tokio_postgres::Error, _: bool, has_password: bool) -> StoreError {
        crate::errors::not_logged_in(error, has_password)
    }
}
