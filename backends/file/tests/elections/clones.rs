//! A leader's process is cloned, and both clones reach the same directory.

use std::time::Duration;

use crate::support::actor;
use bellwether_file::FileRegister;
use bellwether_support::{Scratch, one_clone_goes_on};

#[tokio::test]
async fn of_two_clones_on_one_directory_only_the_first_to_renew_goes_on() {
    let scratch = Scratch::new();
    let original = actor(scratch.path(), "a", Duration::from_secs(60));
    one_clone_goes_on(&original, FileRegister::new(scratch.path(), bellwether_support::clock()).unwrap())
        .await;
}
