//! A candidate of somebody else's that does as those of the library whose format the profile `leader` shares, and knows nothing of
//! ours: it creates the key, updates it with the same token at the revision that it knows, believes until an update fails, and deletes the key
//! when it stops, whatever is there by then. (The library itself believes on until the third failure in a row.)

use async_nats::{Client, HeaderMap};
use base64::Engine as _;
use bellwether_deadman::random_bits;
use bellwether_support::servers::nats::Server;
use serde_json::{Value, json};

use super::{KEY, LEADERS};

pub(crate) struct Other {
    client: Client,
    id: &'static str,
    key: String,
    /// Zero is not written.
    pub(crate) priority: i32,
}

/// What it holds.
#[derive(Clone, Debug)]
pub(crate) struct Holds {
    pub(crate) revision: u64,
    pub(crate) token: String,
}

/// What it sees under the key.
#[derive(Clone, Debug)]
pub(crate) struct Sees {
    pub(crate) revision: u64,
    /// `None` where the key is not there or was deleted.
    pub(crate) value: Option<Value>,
    pub(crate) headers: String,
}

impl Other {
    pub(crate) async fn new(server: &Server, id: &'static str) -> Other {
        Other::on(server, id, KEY).await
    }

    /// Under another key.
    pub(crate) async fn on(server: &Server, id: &'static str, key: &str) -> Other {
        Other { client: server.admin().await, id, key: key.to_owned(), priority: 0 }
    }

    /// Gets in if the key is not there, or was deleted.
    pub(crate) async fn create(&self) -> Option<Holds> {
        let sees = self.get().await;
        if sees.value.is_some() {
            return None;
        }
        let token = format!("{:032x}", random_bits());
        let revision = self.publish(HeaderMap::new(), Some(sees.revision), &self.payload(&token)).await?;
        Some(Holds { revision, token })
    }

    /// Its heartbeat; `None` demotes it.
    pub(crate) async fn update(&self, holds: &Holds) -> Option<Holds> {
        let payload = self.payload(&holds.token);
        let revision = self.publish(HeaderMap::new(), Some(holds.revision), &payload).await?;
        Some(Holds { revision, ..holds.clone() })
    }

    /// On stopping, if it believes to lead: no revision is expected.
    pub(crate) async fn delete(&self) {
        let mut headers = HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        self.publish(headers, None, "").await.expect("nothing is compared");
    }

    /// Writes whatever is wanted over whatever is there, as only a person with a tool would.
    pub(crate) async fn put(&self, text: &str) -> u64 {
        self.publish(HeaderMap::new(), None, text).await.expect("nothing is compared")
    }

    pub(crate) async fn get(&self) -> Sees {
        let body = json!({ "last_by_subj": format!("$KV.{LEADERS}.{}", self.key) });
        let call = format!("$JS.API.STREAM.MSG.GET.KV_{LEADERS}");
        let got = self.client.request(call, body.to_string().into()).await.expect("an answer");
        let got: Value = serde_json::from_slice(&got.payload).expect("JSON");
        let text = |field: &str| {
            let field = got["message"][field].as_str().unwrap_or_default();
            let bytes = base64::engine::general_purpose::STANDARD.decode(field).expect("base64");
            String::from_utf8(bytes).expect("text")
        };
        let headers = text("hdrs");
        let deleted = headers.contains("KV-Operation") || headers.contains("Nats-Marker-Reason");
        let value = serde_json::from_str(&text("data")).ok().filter(|_| !deleted);
        Sees { revision: got["message"]["seq"].as_u64().unwrap_or(0), value, headers }
    }

    fn payload(&self, token: &str) -> String {
        let mut payload = json!({ "id": self.id, "token": token });
        if self.priority != 0 {
            payload["priority"] = self.priority.into();
        }
        payload.to_string()
    }

    async fn publish(&self, mut headers: HeaderMap, expected: Option<u64>, text: &str) -> Option<u64> {
        if let Some(expected) = expected {
            headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string());
        }
        let subject = format!("$KV.{LEADERS}.{}", self.key);
        let done = self.client.request_with_headers(subject, headers, text.to_owned().into()).await;
        let done: Value = serde_json::from_slice(&done.expect("an answer").payload).expect("JSON");
        if done["error"].is_null() {
            return done["seq"].as_u64();
        }
        assert_eq!(done["error"]["err_code"], 10_071, "{done}");
        None
    }
}
