//! A pooler of the test's own in front of a PostgreSQL server: on a free port of the loopback, ended with the test.
//!
//! The program is that of the `PATH`, or Debian's, which is on no ordinary user's `PATH`.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::postgres::Server;
use super::user::{as_user, directory};
use crate::until_blocking;

/// A running pooler.
#[derive(Debug)]
pub struct Pooler {
    dir: PathBuf,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    process: Child,
}

impl Pooler {
    /// One that lends its connections like this: by the `session`, the `transaction` or the `statement`.
    pub fn start(server: &Server, mode: &str) -> Pooler {
        let dir = directory("pgbouncer");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n",
            server.port
        );
        let file = dir.join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut command = as_user(&program(), None);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let pooler = Pooler { dir, port, process: command.spawn().expect("the pooler starts") };
        until_blocking(|| TcpStream::connect(("127.0.0.1", port)).map_err(|_| "the pooler does not come up"));
        pooler
    }

    /// Through it, as the superuser.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // `setpriv` has become the pooler itself, so the number is the pooler's.
        let _ = Command::new("kill").args(["-9", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = places.find_map(|dir| Some(dir.join("pgbouncer")).filter(|program| program.exists()));
    found.expect("pgbouncer is installed: run `cargo xtask test`, which sees to it")
}
