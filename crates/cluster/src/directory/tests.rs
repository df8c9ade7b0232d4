use super::*;
use crate::error::ErrorKind;
use crate::formation::Invitation;
use crate::names::ClusterId;

const DRAWN: NodeId = NodeId::from_random(7);

fn name() -> NodeName {
    NodeName::new("a-0").unwrap()
}

fn open(path: &Path) -> Result<DataDirectory, ClusterError> {
    DataDirectory::open(path, &name(), DRAWN)
}

#[test]
fn a_directory_keeps_its_node_id_and_its_phase() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("deep/inside");
    let consent = Some(Invitation { round: 3, cluster: ClusterId::from_random(5) });
    let mut first = open(&path).unwrap();
    assert_eq!((first.identity().node, &first.identity().phase), (DRAWN, &Phase::FRESH));
    first.set_phase(Phase::Unbound { consent }).unwrap();
    drop(first);
    let again = DataDirectory::open(&path, &name(), NodeId::from_random(8)).unwrap();
    assert_eq!((again.identity().node, &again.identity().phase), (DRAWN, &Phase::Unbound { consent }));
}

#[test]
fn a_second_process_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let _first = open(place.path()).unwrap();
    let refused = open(place.path()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("another process uses"), "{refused}");
    assert!(refused.to_string().contains("end it, or give this node a directory of its own"), "{refused}");
}

#[test]
fn the_directory_of_another_node_is_refused() {
    let place = tempfile::tempdir().unwrap();
    drop(open(place.path()).unwrap());
    let refused = DataDirectory::open(place.path(), &NodeName::new("a-1").unwrap(), DRAWN).unwrap_err();
    assert!(refused.to_string().contains("belongs to the node a-0"), "{refused}");
}

#[test]
fn an_identity_that_is_torn_flipped_or_newer_is_refused_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    drop(open(place.path()).unwrap());
    let file = place.path().join(IDENTITY);
    let good = fs::read(&file).unwrap();
    let newer =
        String::from_utf8(good.clone()).unwrap().replace("\"format\": 1", "\"format\": 2").into_bytes();
    for bad in [Vec::new(), good[..good.len() / 2].to_vec(), b"null".to_vec(), newer] {
        fs::write(&file, &bad).unwrap();
        let refused = open(place.path()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
        assert!(refused.to_string().contains("restore it, or move the data directory away"), "{refused}");
        assert_eq!(fs::read(&file).unwrap(), bad, "nothing is overwritten");
    }
}

/// Hexadecimal digits and letters stay what they are when a bit flips, so JSON alone would not notice.
#[test]
fn an_identity_with_any_flipped_bit_is_refused_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = open(place.path()).unwrap();
    let voter = crate::formation::Voter { node: DRAWN, name: name() };
    let cluster = ClusterId::from_random(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    directory.set_phase(Phase::Bound { cluster, initial: Some(vec![voter]) }).unwrap();
    let file = place.path().join(IDENTITY);
    let (good, identity) = (fs::read(&file).unwrap(), directory.identity().clone());
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &bad).unwrap();
        match read(place.path()) {
            Err(refused) => {
                assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
                assert!(refused.to_string().contains("move the data directory away"), "{refused}");
            }
            // A digit in capitals is the same digit.
            Ok(same) => assert_eq!(same.as_ref(), Some(&identity), "bit {bit}"),
        }
        assert_eq!(fs::read(&file).unwrap(), bad, "nothing is overwritten");
    }
    let other = String::from_utf8(good.clone()).unwrap().replace("cdef\"", "cdee\"");
    fs::write(&file, other).unwrap();
    drop(directory);
    let refused = open(place.path()).unwrap_err();
    assert!(refused.to_string().contains("its checksum does not match"), "{refused}");
    fs::write(place.path().join(LOG), "log").unwrap();
    fs::write(&file, String::from_utf8(good).unwrap().replace('\n', "  ")).unwrap();
    assert_eq!(open(place.path()).unwrap().identity(), &identity, "laid out in another way");
}

#[test]
fn a_log_without_an_identity_is_nobodys() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("raft.redb"), "x").unwrap();
    assert_eq!(open(place.path()).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_node_that_starts_over_keeps_what_it_had() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = open(place.path()).unwrap();
    fs::write(place.path().join("raft.redb"), "log").unwrap();
    let removed = Phase::Removed { cluster: ClusterId::from_random(5) };
    directory.start_over(NodeId::from_random(9), removed.clone()).unwrap();
    let archived = place.path().join(ARCHIVE).join(DRAWN.to_string());
    assert_eq!(fs::read_to_string(archived.join("raft.redb")).unwrap(), "log");
    assert!(!place.path().join(LOG).exists());
    drop(directory);
    let again = open(place.path()).unwrap();
    assert_eq!((again.identity().node, &again.identity().phase), (NodeId::from_random(9), &removed));
}

#[test]
fn a_crash_while_a_node_starts_over_never_leaves_the_old_id_without_its_log() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = open(place.path()).unwrap();
    fs::write(place.path().join(LOG), "log").unwrap();
    // As if the process had ended before anything was moved.
    let begun = Identity {
        node: NodeId::from_random(9),
        putting_away: Some(DRAWN.to_string()),
        ..directory.identity().clone()
    };
    directory.write(begun).unwrap();
    drop(directory);
    let again = open(place.path()).unwrap();
    assert_eq!((again.identity().node, &again.identity().putting_away), (NodeId::from_random(9), &None));
    assert!(place.path().join(ARCHIVE).join(DRAWN.to_string()).join(LOG).exists());
}

#[test]
fn a_member_without_its_log_refuses_and_a_log_that_nobody_voted_in_is_put_away() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = open(place.path()).unwrap();
    fs::write(place.path().join(LOG), "unused").unwrap();
    drop(directory);
    directory = open(place.path()).unwrap();
    assert!(!place.path().join(LOG).exists());
    directory.set_phase(Phase::Bound { cluster: ClusterId::from_random(5), initial: None }).unwrap();
    drop(directory);
    let refused = open(place.path()).unwrap_err();
    assert!(refused.to_string().contains("raft.redb is gone"), "{refused}");
}

#[test]
fn starting_over_twice_archives_both() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = open(place.path()).unwrap();
    for number in 8..10 {
        fs::write(place.path().join(LOG), "log").unwrap();
        let archived = place.path().join(ARCHIVE).join(directory.identity().node.to_string());
        directory.start_over(NodeId::from_random(number), Phase::FRESH).unwrap();
        assert_eq!(directory.identity().node, NodeId::from_random(number));
        assert_eq!(directory.identity().phase, Phase::FRESH);
        assert_eq!(fs::read_to_string(archived.join(LOG)).unwrap(), "log");
        assert!(!place.path().join(LOG).exists());
    }
}

#[test]
fn a_directory_that_may_not_be_written_is_told_from_a_broken_disk() {
    let error = io::Error::from(io::ErrorKind::PermissionDenied);
    let refused = unusable(Path::new("/srv"), "open LOCK", &error);
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    assert!(refused.to_string().contains("has to belong to the user"), "{refused}");
    let broken = unusable(Path::new("/srv"), "open LOCK", &io::Error::from_raw_os_error(5));
    assert_eq!(broken.kind(), ErrorKind::Storage);
}
