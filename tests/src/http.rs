//! A client of `--http` that does what the test says, byte by byte if need be.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{PATIENCE, until_blocking};

/// Where a candidate serves.
#[derive(Clone, Debug)]
pub enum HttpPlace {
    /// A port of loopback.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// A connection.
pub trait HttpStream: Read + Write + Send {}

impl<T: Read + Write + Send> HttpStream for T {}

/// What came back.
#[derive(Debug)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    /// The body.
    pub body: String,
}

impl HttpAnswer {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl HttpPlace {
    /// A port of loopback that was free a moment ago.
    pub fn free_port() -> HttpPlace {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        HttpPlace::Tcp(listener.local_addr().expect("it listens"))
    }

    /// A socket in this directory.
    pub fn socket_in(directory: &Path) -> HttpPlace {
        HttpPlace::Unix(directory.join("http.sock"))
    }

    /// What `--http` is given.
    pub fn flag(&self) -> String {
        match self {
            HttpPlace::Tcp(address) => address.to_string(),
            HttpPlace::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// A connection, as soon as somebody listens.
    #[track_caller]
    pub fn connect(&self) -> Box<dyn HttpStream> {
        until_blocking(|| self.try_connect())
    }

    fn try_connect(&self) -> std::io::Result<Box<dyn HttpStream>> {
        Ok(match self {
            HttpPlace::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
            HttpPlace::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        })
    }

    /// `GET`.
    #[track_caller]
    pub fn get(&self, path: &str) -> HttpAnswer {
        self.request("GET", path, &[], "")
    }

    /// A whole request on a connection of its own, and its whole answer.
    #[track_caller]
    pub fn request(&self, method: &str, path: &str, headers: &[&str], body: &str) -> HttpAnswer {
        let mut stream = self.connect();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n"
        );
        // One that answers and closes before it has read all is no failure.
        let _ = stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes());
        answer(&mut *stream)
    }
}

/// Everything until the other side closes, as an answer.
#[track_caller]
pub fn answer(stream: &mut dyn HttpStream) -> HttpAnswer {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes)
        && bytes.is_empty()
    {
        panic!("no answer: {error}");
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {head}"));
    let head = head.to_lowercase();
    let is_chunked = head.contains("transfer-encoding: chunked");
    let body = if is_chunked { joined_chunks(body) } else { body.to_owned() };
    HttpAnswer { status, head, body }
}

/// Each chunk has its length before it, in hexadecimal digits.
#[track_caller]
fn joined_chunks(mut body: &str) -> String {
    let mut joined = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap_or_else(|_| panic!("no chunk: {length}"));
        joined.push_str(&rest[..length]);
        body = rest[length..].trim_start_matches("\r\n");
    }
    joined
}

/// An event stream that is read as it comes.
pub struct EventStream {
    stream: Box<dyn HttpStream>,
    text: String,
}

impl EventStream {
    /// Asks for `/events`; returns when the answer has begun.
    #[track_caller]
    pub fn open(place: &HttpPlace) -> EventStream {
        EventStream::try_open(place).unwrap_or_else(|status| panic!("the stream is refused: {status}"))
    }

    /// As [`EventStream::open`], with the last events before.
    #[track_caller]
    pub fn open_kept(place: &HttpPlace) -> EventStream {
        let stream = EventStream::try_open_at(place, "/events?kept");
        stream.unwrap_or_else(|status| panic!("the stream is refused: {status}"))
    }

    /// As [`EventStream::open`]; the status if it is refused.
    #[track_caller]
    pub fn try_open(place: &HttpPlace) -> Result<EventStream, u16> {
        EventStream::try_open_at(place, "/events")
    }

    #[track_caller]
    fn try_open_at(place: &HttpPlace, path: &str) -> Result<EventStream, u16> {
        let mut stream = place.connect();
        let _ = stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes());
        let mut open = EventStream { stream, text: String::new() };
        while !open.text.contains("\r\n\r\n") {
            open.read();
        }
        let code = open.text.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        if code != 200 {
            return Err(code);
        }
        Ok(open)
    }

    /// Waits for the next event of this name, and returns its data.
    #[track_caller]
    pub fn next(&mut self, name: &str) -> Value {
        let start = format!("event: {name}\ndata: ");
        loop {
            if let Some(at) = self.text.find(&start)
                && let Some(length) = self.text[at + start.len()..].find("\n\n")
            {
                let end = at + start.len() + length;
                let data = serde_json::from_str(&self.text[at + start.len()..end]).expect("JSON");
                self.text.drain(..end);
                return data;
            }
            self.read();
        }
    }

    #[track_caller]
    fn read(&mut self) {
        let mut bytes = [0; 4_096];
        let count = self.stream.read(&mut bytes).expect("the stream goes on");
        assert!(count > 0, "the stream ended after {:?}", self.text);
        // Events of one stream are small, and each is a chunk: the sizes between them are in nobody's way.
        self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}
