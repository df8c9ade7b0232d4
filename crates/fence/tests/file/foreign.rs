//! What others put into the directory, or in its place: refused or left alone, never guessed at and never removed.

use std::fs;
use std::time::Duration;

use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::file::{FencedFile, read};
use bellwether_fence::{Failure, FenceError};
use bellwether_support::Scratch;

use crate::stage::{epoch, fenced, names, refused, stamp, text};

fn failure<T: std::fmt::Debug>(written: Result<T, FenceError>) -> Failure {
    match written.unwrap_err() {
        FenceError::Failed(failure) => failure,
        other => panic!("{other}"),
    }
}

#[test]
fn another_election_s_value_is_refused_whatever_its_epoch() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("routes");
    fenced(&dir).write(epoch(5), b"ours").unwrap();
    let other = FencedFile::new(&dir, ElectionName::new("billing").unwrap());
    for number in [1, 5, 9] {
        for failed in [failure(other.write(epoch(number), b"x")), failure(other.adopt(epoch(number)))] {
            assert!(matches!(failed, Failure::OtherElection { .. }), "{failed}");
        }
    }
    assert_eq!(text(&fenced(&dir)).as_deref(), Some("ours"));
}

#[test]
fn content_without_an_epoch_is_refused_until_it_is_adopted() {
    let scratch = Scratch::new();
    let file = fenced(scratch.path());
    fs::write(scratch.path().join("4.fenced"), "by hand").unwrap();
    for failed in [failure(file.write(epoch(1), b"x")), failure(file.raise(epoch(1)).map(drop))] {
        assert!(matches!(failed, Failure::Unstamped), "{failed}");
    }
    let value = file.read().unwrap();
    assert_eq!((value.stamp, value.content.as_deref()), (None, Some(&b"by hand"[..])));
    assert_eq!(file.adopt(epoch(3)).unwrap().as_deref(), Some(&b"by hand"[..]));
    assert_eq!(refused(file.write(epoch(2), b"x")), (2, 3));
    for _ in 0..20 {
        file.write(epoch(3), b"ours").unwrap();
    }
    assert_eq!(
        fs::read_to_string(scratch.path().join("4.fenced")).unwrap(),
        "by hand",
        "it is not ours to sweep"
    );
}

#[test]
fn an_epoch_from_two_to_the_53_on_is_no_epoch() {
    let scratch = Scratch::new();
    let file = fenced(scratch.path());
    let version = |epoch: u64| format!("bellwether-fence/1 epoch={epoch} present reports\nx");
    fs::write(scratch.path().join("1.fenced"), version(Epoch::MAX.get())).unwrap();
    assert_eq!(
        refused(file.write(epoch(Epoch::MAX.get() - 1), b"x")),
        (Epoch::MAX.get() - 1, Epoch::MAX.get())
    );
    file.write(Epoch::MAX, b"the last").unwrap();
    fs::write(scratch.path().join("3.fenced"), version(Epoch::MAX.get() + 1)).unwrap();
    for failed in [
        failure(file.write(Epoch::MAX, b"x")),
        failure(file.adopt(Epoch::MAX).map(drop)),
        failure(read(scratch.path()).map(drop)),
    ] {
        assert!(matches!(&failed, Failure::Unreadable(_)), "{failed}");
        assert!(failed.to_string().contains("9007199254740992"), "{failed}");
    }
    assert_eq!(names(scratch.path()), ["1.fenced", "2.fenced", "3.fenced"]);
}

#[test]
fn what_cannot_be_a_version_is_refused_and_left_where_it_is() {
    for what in ["directory", "link", "huge"] {
        let scratch = Scratch::new();
        let file = fenced(scratch.path());
        file.write(epoch(1), b"x").unwrap();
        let place = scratch.path().join("2.fenced");
        match what {
            "directory" => fs::create_dir(&place).unwrap(),
            "link" => std::os::unix::fs::symlink("1.fenced", &place).unwrap(),
            _ => fs::File::create(&place).unwrap().set_len(1 << 25).unwrap(),
        }
        let failed = failure(file.write(epoch(2), b"y"));
        assert!(matches!(failed, Failure::Unreadable(_)), "{what}: {failed}");
        assert!(place.symlink_metadata().is_ok());
    }
}

#[test]
fn files_of_others_stay_and_do_not_count() {
    let scratch = Scratch::new();
    let others = ["9.json", "9.fenced.bak", "007.fenced", "x.fenced", "fenced", ".tmp-notes"];
    for name in others {
        fs::write(scratch.path().join(name), name).unwrap();
    }
    let file = fenced(scratch.path());
    for number in 1..=30 {
        file.write(epoch(number), b"ours").unwrap();
    }
    for name in others {
        assert_eq!(fs::read_to_string(scratch.path().join(name)).unwrap(), name);
    }
    assert_eq!(names(scratch.path()).len(), others.len() + 8);
    assert_eq!(file.read().unwrap().stamp, stamp(30));
}

#[test]
fn what_a_crash_left_behind_is_swept_once_it_is_old_and_only_if_it_is_ours() {
    let scratch = Scratch::new();
    let file = fenced(scratch.path());
    let ours = "bellwether-fence/1 epoch=7 present reports\nhalf of the cont";
    for (name, content, age_seconds) in [
        (".tmp-00000000000000aa", ours, 3600),
        (".tmp-00000000000000bb", "theirs", 3600),
        (".tmp-00000000000000cc", ours, 60),
    ] {
        let path = scratch.path().join(name);
        fs::write(&path, content).unwrap();
        let left = fs::File::options().write(true).open(&path).unwrap();
        let now = left.metadata().unwrap().modified().unwrap();
        left.set_modified(now - Duration::from_secs(age_seconds)).unwrap();
    }
    file.write(epoch(1), b"x").unwrap();
    assert_eq!(names(scratch.path()), [".tmp-00000000000000bb", ".tmp-00000000000000cc", "1.fenced"]);
}

#[test]
fn a_plain_file_in_the_directory_s_place_is_refused_with_what_to_do() {
    let scratch = Scratch::new();
    let place = scratch.path().join("routes");
    fs::write(&place, "a plain file").unwrap();
    let failed = failure(fenced(&place).write(epoch(1), b"x"));
    assert!(failed.to_string().contains("in the place of a directory"), "{failed}");
    assert_eq!(fs::read_to_string(&place).unwrap(), "a plain file");
    let failed = failure(fenced(scratch.path().join("no/such")).write(epoch(1), b"x"));
    assert!(failed.to_string().contains("make the directory that it is to be in"), "{failed}");
}
