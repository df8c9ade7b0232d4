//! A client that campaigns, as docs/clients.md has it, and does whatever else a test wants.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_tests::http::{HttpPlace, HttpStream};
use bellwether_tests::until_blocking;
use serde_json::Value;
use std::time::Duration;

/// One answer, line by line.
pub(crate) struct Answer {
    stream: Box<dyn HttpStream>,
    text: String,
    /// The client's clock before the request.
    pub(crate) asked: Boot,
    pub(crate) status: u16,
}

impl Answer {
    pub(crate) fn ask(place: &HttpPlace, path: &str, headers: &[String], body: &str) -> Answer {
        let mut stream = place.connect();
        let asked = boot_now();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n"
        );
        let _ = stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes());
        let mut answer = Answer { stream, text: String::new(), asked, status: 0 };
        while !answer.text.contains("\r\n\r\n") && answer.read() {}
        let code = answer.text.split(' ').nth(1).and_then(|code| code.parse().ok());
        answer.status = code.unwrap_or(0);
        answer
    }

    /// The next line; `None` at the end of the answer.
    pub(crate) fn line(&mut self) -> Option<Value> {
        loop {
            // Sizes of chunks are lines, too.
            while let Some(end) = self.text.find('\n') {
                let line: String = self.text.drain(..=end).collect();
                if line.starts_with('{') {
                    return Some(serde_json::from_str(&line).expect("JSON"));
                }
            }
            if !self.read() {
                return None;
            }
        }
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; 4_096];
        let count = self.stream.read(&mut bytes).unwrap_or(0);
        self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }
}

/// What a client has heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) campaign: String,
    pub(crate) epoch: Option<u64>,
    /// When it first heard that it leads.
    pub(crate) since: Option<Boot>,
    /// Until when it may believe so, as far as it was ever told.
    pub(crate) until: Boot,
    pub(crate) ended: Option<String>,
    pub(crate) lines: usize,
}

/// A client that asks again and again, in a thread of its own.
pub(crate) struct Campaigner {
    pub(crate) place: HttpPlace,
    headers: Vec<String>,
    heard: Arc<Mutex<Heard>>,
    asks: Arc<AtomicBool>,
}

impl Campaigner {
    pub(crate) fn start(place: &HttpPlace, headers: &[&str]) -> Campaigner {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let asks = Arc::new(AtomicBool::new(true));
        let client = Campaigner { place: place.clone(), headers, heard, asks };
        let (place, headers) = (client.place.clone(), client.headers.clone());
        let (heard, asks) = (Arc::clone(&client.heard), Arc::clone(&client.asks));
        std::thread::spawn(move || {
            let mut path = "/campaign".to_owned();
            while asks.load(Ordering::Relaxed) {
                let mut answer = Answer::ask(&place, &path, &headers, "");
                if answer.status != 200 {
                    let mut heard = heard.lock().expect("no panic");
                    heard.ended.get_or_insert_with(|| "unknown".to_owned());
                    return;
                }
                while let Some(line) = answer.line() {
                    if !asks.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut heard = heard.lock().expect("no panic");
                    heard.take(&line, answer.asked);
                    path = format!("/campaign/{}", heard.campaign);
                }
            }
        });
        client
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().expect("no panic").clone()
    }

    /// Waits until it has heard something.
    #[track_caller]
    pub(crate) fn until(&self, what: impl Fn(&Heard) -> bool) -> Heard {
        until_blocking(|| {
            let heard = self.heard();
            if what(&heard) { Ok(heard) } else { Err(format!("{heard:?}")) }
        })
    }

    /// Waits until it leads.
    #[track_caller]
    pub(crate) fn leads(&self) -> Heard {
        self.until(|heard| heard.since.is_some())
    }

    /// Asks no more, and closes its connection at the next line. What it had been told until then.
    pub(crate) fn fall_silent(&self) -> Heard {
        self.asks.store(false, Ordering::Relaxed);
        self.heard()
    }

    /// Its work has ended; returns the instant before it said so.
    pub(crate) fn leave(&self) -> Boot {
        self.asks.store(false, Ordering::Relaxed);
        let before = boot_now();
        let headers: Vec<&str> = self.headers.iter().map(String::as_str).collect();
        let path = format!("/campaign/{}", self.heard().campaign);
        let answer = self.place.request("DELETE", &path, &headers, "");
        assert_eq!(answer.status, 200, "{answer:?}");
        before
    }
}

impl Heard {
    fn take(&mut self, line: &Value, asked: Boot) {
        self.lines += 1;
        self.campaign = line["campaign"].as_str().expect("every line has it").to_owned();
        let valid = Duration::from_millis(line["valid_ms"].as_u64().expect("every line has it"));
        if let Some(ended) = line["ended"].as_str() {
            self.ended = Some(ended.to_owned());
        } else if !valid.is_zero() {
            self.epoch = line["epoch"].as_u64();
            self.since.get_or_insert_with(boot_now);
            self.until = self.until.max(asked + valid);
        }
    }
}
