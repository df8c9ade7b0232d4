//! A leader's process is cloned, and both clones reach the same server.

use crate::support::{BUCKET, LEADERS, actor, cluster, leaders};
use bellwether_nats::{Config, NatsRegister};
use bellwether_support::one_clone_goes_on;
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;

#[tokio::test]
async fn of_two_clones_on_one_server_only_the_first_to_renew_goes_on_in_every_profile() {
    let server = Server::start(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    server.bucket(LEADERS, json!({})).await;
    for url in [server.url(), cluster(&server), leaders(server.port())] {
        let register = NatsRegister::new(Config::from_url(&url).unwrap());
        one_clone_goes_on(&actor(&url, "a"), register).await;
    }
}
