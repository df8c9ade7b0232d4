//! Where there is no kernel notification that we use: everything is polled.

use std::collections::VecDeque;
use std::path::Path;

use bellwether_core::{ElectionName, Error, ErrorKind};

use crate::errors::BACKEND;
use crate::notify::Notice;

#[derive(Debug)]
pub(crate) struct Queue;

impl Queue {
    pub(crate) fn new() -> Result<Queue, Error> {
        Err(Error::new(ErrorKind::Unsupported, BACKEND, "this system has no notification that is used here"))
    }

    pub(crate) fn watch(&self, _: &ElectionName, _: &Path) -> Result<bool, Error> {
        Ok(false)
    }

    pub(crate) fn unwatch(&self, _: &ElectionName) {}

    pub(crate) async fn read(&self, _: &mut VecDeque<Notice>) {
        std::future::pending().await
    }
}
