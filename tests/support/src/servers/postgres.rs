//! A PostgreSQL server of the test's own: initialised in a temporary directory, on a free port of the loopback, with fsync on,
//! ended and removed with the test.
//!
//! The programs are those of `BELLWETHER_TEST_POSTGRES` (a directory), of the `PATH`, or Debian's.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use super::user::{as_user, directory, own, run};
use crate::netns::Node;
use crate::until;

/// A running server, or one that was stopped and can be started again.
#[derive(Debug)]
pub struct Server {
    dir: PathBuf,
    /// Where it listens.
    pub port: u16,
    /// The machine it runs on, if not this one.
    node: Option<Node>,
    /// Settings beside those of every test's server.
    settings: Vec<String>,
    process: Option<Child>,
}

impl Server {
    /// A fresh one that has been up for longer than this, so that no claim has to wait for it.
    pub async fn start(quiet: Duration) -> Server {
        Server::start_with(quiet, None, &[]).await
    }

    /// As [`Server::start`], on that machine instead of this one, and with more settings, as `name=value`.
    pub async fn start_with(quiet: Duration, node: Option<&Node>, settings: &[&str]) -> Server {
        let mut server = Server::prepare(|data| {
            run(as_user(&bin().join("initdb"), None).args([
                "-D",
                data,
                "-A",
                "trust",
                "-U",
                "postgres",
                "--no-instructions",
            ]));
        });
        server.node = node.cloned();
        server.settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let rules = server.dir.join("data/pg_hba.conf");
        let all = std::fs::read_to_string(&rules).unwrap() + "host all all samenet trust\n";
        std::fs::write(rules, all).unwrap();
        server.up().await;
        tokio::time::sleep(quiet).await;
        server
    }

    /// A streaming replica of this one, by the server's own functions for backups: not every distribution of it has
    /// `pg_basebackup`.
    pub async fn replica(&self) -> Server {
        let admin = self.admin().await;
        let version = self.number("SELECT current_setting('server_version_num')::int8").await;
        let (begin, end) = if version < 150_000 {
            ("pg_start_backup('replica', true, false)", "pg_stop_backup(false)")
        } else {
            ("pg_backup_start('replica', true)", "pg_backup_stop()")
        };
        admin.batch_execute(&format!("SELECT {begin}")).await.unwrap();
        let mut replica = Server::prepare(|data| copy(&self.dir.join("data"), Path::new(data)));
        let label = admin.query_one(&format!("SELECT labelfile FROM {end}"), &[]).await.unwrap();
        replica.write("data/backup_label", label.get(0));
        replica.write("data/standby.signal", "");
        let primary = format!(
            "primary_conninfo = 'host=127.0.0.1 port={} user=postgres application_name=replica'\n",
            self.port
        );
        let settings = replica.dir.join("data/postgresql.auto.conf");
        std::fs::write(&settings, std::fs::read_to_string(&settings).unwrap() + &primary).unwrap();
        own(&replica.dir);
        replica.up().await;
        replica
    }

    fn prepare(fill: impl FnOnce(&str)) -> Server {
        let dir = directory("pg");
        fill(dir.join("data").to_str().unwrap());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Server { dir, port, node: None, settings: Vec::new(), process: None }
    }

    /// Starts it and waits until it answers. While processes of an earlier one have not noticed yet that their first was killed,
    /// it refuses to start, and is started again.
    pub async fn up(&mut self) {
        let process = Mutex::new(self.spawn());
        until(|| async {
            tokio_postgres::connect(&self.local_url(), NoTls).await.map(drop).map_err(|_| {
                let said = self.log();
                let mut process = process.lock().unwrap();
                if process.try_wait().unwrap().is_some() {
                    *process = self.spawn();
                }
                format!("the server does not come up:\n{said}")
            })
        })
        .await;
        self.process = Some(process.into_inner().unwrap());
    }

    fn spawn(&self) -> Child {
        let log = std::fs::File::create(self.dir.join("log")).unwrap();
        let namespace = self.node.as_ref().map(|node| node.namespace.as_str());
        let mut command = as_user(&bin().join("postgres"), namespace);
        command.arg("-D").arg(self.dir.join("data")).args(["-p", &self.port.to_string()]);
        command.arg("-k").arg(&self.dir);
        let addresses = format!("listen_addresses={}", self.address());
        for setting in [&addresses, "fsync=on", "max_connections=300"] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().expect("the server starts")
    }

    /// `INT` ends the sessions at once, `QUIT` is a crash, and `KILL` is one of the first process only: the others notice, and
    /// end by themselves.
    pub fn down(&mut self, signal: &str) {
        if let Some(mut process) = self.process.take() {
            let pid = std::fs::read_to_string(self.dir.join("data/postmaster.pid")).unwrap_or_default();
            let pid = pid.lines().next().map_or_else(|| process.id().to_string(), str::to_owned);
            let _ = Command::new("kill").args([&format!("-{signal}"), &pid]).status();
            let _ = process.wait();
        }
    }

    /// A signal to its first process, as `STOP`.
    pub fn signal(&self, name: &str) {
        if let Some(process) = &self.process {
            let _ = Command::new("kill").args([&format!("-{name}"), &process.id().to_string()]).status();
        }
    }

    /// kill −9 of one of its processes.
    pub fn kill(&self, pid: i32) {
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }

    /// As its superuser.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}:{}/postgres", self.address(), self.port)
    }

    /// As its superuser, by its Unix socket: whatever becomes of the network.
    pub fn local_url(&self) -> String {
        let dir = self.dir.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{dir}:{}/postgres", self.port)
    }

    fn address(&self) -> &str {
        self.node.as_ref().map_or("127.0.0.1", |node| &node.address)
    }

    /// A session of an administrator.
    pub async fn admin(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.local_url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// The one number that this query answers.
    pub async fn number(&self, sql: &str) -> i64 {
        self.admin().await.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Asks again and again until the number is as wanted. The catalogue tells of no changes, so there is nothing to wait on.
    pub async fn until(&self, sql: &str, wanted: impl Fn(i64) -> bool + Sync) {
        let wanted = &wanted;
        until(|| async move {
            let number = self.number(sql).await;
            if wanted(number) { Ok(()) } else { Err(format!("still {number}: {sql}")) }
        })
        .await;
    }

    /// Writes a file of the server's own, which nobody else can read, into [`Server::dir`].
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let path = self.dir.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let owner = std::fs::metadata(&self.dir).unwrap();
        std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        path
    }

    /// Sets this in its configuration, has it read (`pg_hba.conf` too), and waits until new sessions see it.
    pub async fn set(&self, setting: &str, value: &str) {
        let admin = self.admin().await;
        admin.batch_execute(&format!("ALTER SYSTEM SET {setting} = '{value}'")).await.unwrap();
        admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        let is = format!("SELECT (current_setting('{setting}') = '{value}')::int4::int8");
        self.until(&is, |is| is == 1).await;
    }

    /// What it has written into its log since it was started last.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap()
    }

    /// A directory that its user can write to.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down("QUIT");
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Copies what a backup consists of: neither the files of the running server nor its log, which the replica streams.
fn copy(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o700)).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let to = to.join(&name);
        let name = name.to_string_lossy();
        if from.is_dir() {
            if ["pg_wal", "pg_replslot", "pg_stat_tmp"].contains(&&*name) {
                std::fs::create_dir(&to).unwrap();
            } else {
                copy(&from, &to);
            }
        } else if !name.starts_with("postmaster.") {
            match std::fs::copy(&from, &to) {
                // The server removes files while it runs.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            }
        }
    }
}

/// Where the server's programs are.
fn bin() -> PathBuf {
    let has = |dir: &PathBuf| ["initdb", "postgres"].iter().all(|name| dir.join(name).exists());
    if let Some(dir) = std::env::var_os("BELLWETHER_TEST_POSTGRES").map(PathBuf::from) {
        assert!(has(&dir), "BELLWETHER_TEST_POSTGRES is {}, where there is no initdb", dir.display());
        return dir;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    places.extend(debian.map(|version| version.path().join("bin")));
    places.into_iter().find(has).expect("PostgreSQL is installed: run `cargo xtask test`, which sees to it")
}
