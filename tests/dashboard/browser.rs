//! One Chromium for all tests of the program, driven by its DevTools protocol: JSON, each message ended by a zero byte, over two pipes.
//!
//! Pipes and not a port: nobody else can reach them, and the browser ends when they close, however the tests end.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};

use bellwether_tests::{PATIENCE, is_root};
use serde_json::{Value, json};

static BROWSER: LazyLock<Browser> = LazyLock::new(Browser::start);

/// What a page has told without being asked: console, exceptions, requests.
pub(crate) type Told = Arc<Mutex<Vec<Value>>>;

pub(crate) struct Browser {
    commands: Mutex<Commands>,
    waiting: Arc<Mutex<Waiting>>,
}

struct Commands {
    pipe: ChildStdin,
    last: u64,
}

#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, Sender<Value>>,
    /// By session.
    told: HashMap<String, Told>,
}

impl Browser {
    pub(crate) fn shared() -> &'static Browser {
        &BROWSER
    }

    fn start() -> Browser {
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard-browser");
        let _ = std::fs::remove_dir_all(&profile);
        // The protocol is on descriptors 3 and 4.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"]).arg(program());
        command.args(["--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.args(["--no-first-run", "--disable-background-networking", "--disable-component-update"]);
        command.args(["--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en"]);
        let mut flag = OsString::from("--user-data-dir=");
        flag.push(&profile);
        command.arg(flag);
        if is_root() {
            // Its sandbox refuses to run as root. It loads nothing but our own pages.
            command.arg("--no-sandbox");
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let pipe = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let hears = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                hear(&hears, serde_json::from_slice(&message).expect("JSON"));
            }
            // Whoever waits for an answer waits in vain.
            hears.lock().expect("nobody panics with it").answers.clear();
            let _ = child.wait();
        });
        Browser { commands: Mutex::new(Commands { pipe, last: 0 }), waiting }
    }

    /// Asks for something and waits for it.
    #[track_caller]
    pub(crate) fn ask(&self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        let (sender, answer) = channel();
        {
            let mut commands = self.commands.lock().expect("nobody panics with it");
            commands.last += 1;
            let id = commands.last;
            self.waiting.lock().expect("nobody panics with it").answers.insert(id, sender);
            let mut message = json!({ "id": id, "method": method, "params": parameters });
            if let Some(session) = session {
                message["sessionId"] = session.into();
            }
            let sent = commands.pipe.write_all(format!("{message}\0").as_bytes());
            assert!(sent.is_ok(), "the browser is gone: {sent:?}; does `chromium-headless-shell` run?");
        }
        let answer = answer.recv_timeout(PATIENCE);
        let answer = answer.unwrap_or_else(|error| panic!("the browser does not answer {method}: {error}"));
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// What a session tells from now on.
    pub(crate) fn listen(&self, session: &str) -> Told {
        let told = Told::default();
        let mut waiting = self.waiting.lock().expect("nobody panics with it");
        waiting.told.insert(session.to_owned(), Arc::clone(&told));
        told
    }
}

fn hear(waiting: &Mutex<Waiting>, message: Value) {
    let mut waiting = waiting.lock().expect("nobody panics with it");
    if let Some(id) = message["id"].as_u64() {
        if let Some(sender) = waiting.answers.remove(&id) {
            let _ = sender.send(message);
        }
    } else if let Some(told) = message["sessionId"].as_str().and_then(|session| waiting.told.get(session)) {
        told.lock().expect("nobody panics with it").push(message);
    }
}

/// Where `cargo xtask` finds it.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("BELLWETHER_TEST_CHROMIUM") {
        return PathBuf::from(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|program| program.is_file());
    found.expect("no Chromium: run `cargo xtask test`, which sees to it")
}
