use super::*;

fn name(text: &str) -> ElectionName {
    ElectionName::new(text).unwrap()
}

#[test]
fn a_command_is_read_back_as_it_was_and_bytes_that_are_none_are_refused() {
    let who =
        Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(u128::MAX) };
    let campaign = Campaign {
        on: name("e"),
        who,
        floor: Epoch::MAX,
        priority: -3,
        metadata: [("k".to_owned(), "v".to_owned())].into(),
        cooldown: Some(Duration::from_secs(3)),
        danger_reclaim: false,
        wall: Wall::from_unix_nanos(-1),
    };
    let command = Command::InSession {
        session: SessionId(7),
        sequence: Sequence(9),
        answered_below: Sequence(8),
        act: Act::Campaign(campaign),
    };
    let bytes = command.encode();
    assert_eq!(Command::decode(&bytes), Ok(command));
    for length in 0..bytes.len() {
        assert!(Command::decode(&bytes[..length]).is_err(), "{length} bytes");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(Command::decode(&longer).is_err(), "something follows");
    let mut newer = bytes;
    newer[0] = VERSION + 1;
    assert!(Command::decode(&newer).unwrap_err().contains("version 2"));
}

#[test]
fn the_encoding_stays_as_it_is_in_logs_on_disk() {
    let open = Command::OpenSession { nonce: 5, ttl: Duration::from_secs(10), label: "x".to_owned() };
    assert_eq!(open.encode(), [1, 0, 5, 10, 0, 1, b'x']);
    assert_eq!(Command::CloseSession(SessionId(300)).encode(), [1, 1, 0xac, 2]);
    assert_eq!(Command::ExpireSession { session: SessionId(3), term: 4 }.encode(), [1, 2, 3, 4]);
    let retire = Act::Retire { on: name("e"), incarnation: Incarnation::from_bits(6), cancels: vec![] };
    let in_session = Command::InSession {
        session: SessionId(1),
        sequence: Sequence(2),
        answered_below: Sequence(3),
        act: retire,
    };
    assert_eq!(in_session.encode(), [1, 3, 1, 2, 3, 1, 1, b'e', 6, 0]);
    let discard = Command::DangerDiscard { on: name("e") };
    assert_eq!(discard.encode(), [1, 10, 1, b'e'], "the last variant of the first release");
}

#[test]
fn a_name_or_an_epoch_that_is_none_is_no_command() {
    let mut bytes = Command::DangerDiscard { on: name("e") }.encode();
    bytes[3] = 7; // A control character.
    assert!(Command::decode(&bytes).is_err());
    let force = Command::DangerForceRelease { on: name("e"), epoch: Epoch::MAX };
    let mut bytes = force.encode();
    assert_eq!(Command::decode(&bytes), Ok(force));
    *bytes.last_mut().unwrap() += 1; // 2^53 and more.
    assert!(Command::decode(&bytes).is_err());
}
