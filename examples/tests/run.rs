//! Each example does what it shows, alone and with a second copy of itself on the same directory.

use std::process::{Command, Stdio};

fn twice(program: &str) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = || {
        Command::new(program)
            .arg(directory.path().join("elections"))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the example starts")
    };
    let copies = [start(), start()];
    copies
        .into_iter()
        .map(|copy| {
            let output = copy.wait_with_output().expect("the example ends");
            assert!(output.status.success(), "{program}: {}", output.status);
            String::from_utf8(output.stdout).expect("text")
        })
        .collect()
}

fn epochs(outputs: &[String], before: &str) -> Vec<u64> {
    let number = |text: &str| -> u64 {
        let after = &text[text.find(before).expect("an epoch") + before.len()..];
        after.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).expect("a number")
    };
    outputs.iter().map(|text| number(text)).collect()
}

#[test]
fn poll() {
    for text in twice(env!("CARGO_BIN_EXE_poll")) {
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}

#[test]
fn wait() {
    let outputs = twice(env!("CARGO_BIN_EXE_wait"));
    let epochs = epochs(&outputs, "epoch ");
    assert_ne!(epochs[0], epochs[1], "{outputs:?}");
    assert!(
        outputs.iter().all(|text| text.contains("step 3") && text.contains("stepped down")),
        "{outputs:?}"
    );
}

#[test]
fn lead() {
    let outputs = twice(env!("CARGO_BIN_EXE_lead"));
    let epochs = epochs(&outputs, "under epoch ");
    assert_ne!(epochs[0], epochs[1], "{outputs:?}");
    assert!(outputs.iter().all(|text| text.contains("step 3")), "{outputs:?}");
}

#[test]
fn hooks() {
    for text in twice(env!("CARGO_BIN_EXE_hooks")) {
        let (begun, over) = (text.find("hook: leading"), text.find("is over"));
        assert!(begun.is_some() && begun < over, "{text}");
        assert!(text.contains("callback: acquired") && text.contains("leadership released"), "{text}");
    }
}
