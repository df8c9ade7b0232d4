//! A server in operator mode, and what is signed for it: tokens (JWT) of the operator, of two accounts and of their users.
//!
//! A token is `base64url(header).base64url(claims).base64url(signature)`, signed with the issuer's nkey.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Scratch, clock};
use nkeys::KeyPair;
use serde_json::{Value, json};

/// Somebody who signs for others.
pub(crate) struct Operator {
    operator: KeyPair,
    account: KeyPair,
    system: KeyPair,
    scratch: Scratch,
}

fn now_seconds() -> i64 {
    clock().wall().as_unix_nanos() / 1_000_000_000
}

fn token(issuer: &KeyPair, subject: &str, nats: Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({
        "jti": format!("{subject}-{}", clock().wall().as_unix_nanos()), "iat": now_seconds(),
        "iss": issuer.public_key(), "sub": subject, "name": "test", "nats": nats,
    });
    let signed = format!("{}.{}", part(&json!({ "typ": "JWT", "alg": "ed25519-nkey" })), part(&claims));
    let signature = issuer.sign(signed.as_bytes()).expect("a key that signs");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

impl Operator {
    /// And a server that trusts nobody else.
    pub(crate) async fn with_server() -> (Operator, Server) {
        let own = Operator {
            operator: KeyPair::new_operator(),
            account: KeyPair::new_account(),
            system: KeyPair::new_account(),
            scratch: Scratch::new(),
        };
        let operator =
            token(&own.operator, &own.operator.public_key(), json!({ "type": "operator", "version": 2 }));
        let (account, system) = (own.account.public_key(), own.system.public_key());
        let config = format!(
            "operator: {operator}\nsystem_account: {system}\n\
             resolver: {{ type: full, dir: \"{}\" }}\nresolver_preload: {{ {account}: {}, {system}: {} }}",
            own.scratch.path().join("accounts").display(),
            own.of_account(json!({})),
            own.of_system(),
        );
        let server = Server::start_with(Version::Current, &config).await;
        (own, server)
    }

    fn of_account(&self, revocations: Value) -> String {
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
            "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
        });
        let nats = json!({ "type": "account", "version": 2, "limits": limits, "revocations": revocations });
        token(&self.operator, &self.account.public_key(), nats)
    }

    fn of_system(&self) -> String {
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        });
        token(
            &self.operator,
            &self.system.public_key(),
            json!({ "type": "account", "version": 2, "limits": limits }),
        )
    }

    /// A credentials file of a new user, who may publish to these subjects, and its public key.
    pub(crate) fn user(&self, name: &str, publish: &[&str]) -> (PathBuf, String) {
        let permissions = if publish.is_empty() { json!({}) } else { json!({ "allow": publish }) };
        self.credentials(&self.account, name, permissions)
    }

    fn credentials(&self, account: &KeyPair, name: &str, publish: Value) -> (PathBuf, String) {
        let user = KeyPair::new_user();
        let nats = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": publish, "sub": {},
        });
        let token = token(account, &user.public_key(), nats);
        let file = self.scratch.path().join(format!("{name}.creds"));
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed().expect("a key that signs")
        );
        std::fs::write(&file, text).expect("a scratch directory is writable");
        (file, user.public_key())
    }

    /// Takes back what was signed for this user until now.
    pub(crate) async fn revoke(&self, server: &Server, user: &str) {
        let (file, _) = self.credentials(&self.system, "system", json!({}));
        let admin = async_nats::ConnectOptions::with_credentials(&read(&file)).expect("credentials");
        let admin = admin.connect(server.url()).await.expect("the system's user is let in");
        let account = self.of_account(json!({ user: now_seconds() + 1 }));
        let answer = admin.request("$SYS.REQ.CLAIMS.UPDATE", account.into()).await.expect("an answer");
        let answer: Value = serde_json::from_slice(&answer.payload).expect("JSON");
        assert_eq!(answer["data"]["code"], 200, "{answer}");
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("our own file")
}
