//! One HTTPS request over a connection of its own.

use std::net::TcpStream;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What the server says.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Without the headers.
    pub body: String,
}

impl Answer {
    /// The body, which must be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }
}

type TlsStream = tokio_rustls::client::TlsStream<tokio::net::TcpStream>;

/// A request that the server is still reading; it gives up when this is dropped.
#[derive(Debug)]
pub struct HalfSent {
    _stream: TlsStream,
}

#[derive(Debug)]
pub(super) struct Https(Arc<ClientConfig>);

impl Https {
    /// Whoever shows a certificate that this one signed.
    pub(super) fn trusting(ca: &str) -> Https {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM")).expect("a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Https(Arc::new(config))
    }

    pub(super) async fn ask(
        &self,
        stream: TcpStream,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let answer = self.exchange(stream, &request(token, method, path, body)).await;
        let answer = answer.map_err(|error| format!("{method} {path}: {error}"))?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("no HTTP: {answer}"))?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| format!("no HTTP: {head}"))?;
        Ok(Answer { status, body: body.to_owned() })
    }

    /// Sends a POST but for its last byte.
    pub(super) async fn half_send(
        &self,
        stream: TcpStream,
        token: &str,
        path: &str,
    ) -> std::io::Result<HalfSent> {
        let request = request(token, "POST", path, Some(&Value::from("never sent whole")));
        Ok(HalfSent { _stream: self.send(stream, &request[..request.len() - 1]).await? })
    }

    async fn send(&self, stream: TcpStream, request: &str) -> std::io::Result<TlsStream> {
        stream.set_nonblocking(true)?;
        let stream = tokio::net::TcpStream::from_std(stream)?;
        let name = ServerName::from(stream.peer_addr()?.ip());
        let mut stream = TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await?;
        stream.write_all(request.as_bytes()).await?;
        Ok(stream)
    }

    async fn exchange(&self, stream: TcpStream, request: &str) -> std::io::Result<String> {
        let mut stream = self.send(stream, request).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

/// In HTTP 1.0, where an answer ends with its connection and never comes in chunks.
fn request(token: &str, method: &str, path: &str, body: Option<&Value>) -> String {
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.0\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}
