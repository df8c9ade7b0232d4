//! `--help`, `man`, `explain`: they say what the command does.

use std::process::Command;

use bellwether_tests::{bellwether, json, run_to_end};

fn said(arguments: &[&str]) -> String {
    let mut command = Command::new(bellwether());
    command.args(arguments);
    let output = run_to_end(command);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn help_and_the_manual_list_the_exit_codes() {
    for help in [&["--help"][..], &["run", "--help"], &["step-down", "--help"]] {
        let help = said(help);
        let (_, codes) = help.split_once("Exit codes:").unwrap_or_else(|| panic!("{help}"));
        for code in ["0", "64", "75", "127", "any"] {
            assert!(codes.contains(&format!("\n  {code:>3}  ")), "{code} is not in {codes}");
        }
    }
    let manual = said(&["man"]);
    let (_, status) = manual.split_once(".SH \"EXIT STATUS\"").unwrap_or_else(|| panic!("{manual}"));
    for code in ["\\fB0\\fR", "\\fB75\\fR", "\\fB126\\fR"] {
        assert!(status.contains(code), "{code} is not in {status}");
    }
}

#[test]
fn the_manual_has_every_command_that_help_has_and_every_variable() {
    let manual = said(&["man"]);
    for page in ["bellwether-run", "bellwether-postgres-init", "bellwether-nats-health"] {
        assert!(manual.contains(&format!(".TH {page} ")), "{page} is not in the manual");
    }
    assert!(!manual.contains("bellwether-tables"), "it is hidden");
    let help = said(&["--help"]);
    for variable in ["BELLWETHER_BACKEND", "BELLWETHER_CONFIG", "BELLWETHER_ID"] {
        assert!(manual.contains(&format!("\\fB{variable}\\fR")), "{variable} is not in the manual");
        assert!(help.contains(&format!("[env: {variable}")), "{variable} is not in {help}");
    }
}

#[test]
fn the_exit_codes_are_told_for_every_command_that_ends_with_them() {
    let table = said(&["tables", "exit-codes"]);
    for (code, command) in
        [("1", "`watch`"), ("1", "`nats health`"), ("76", "`acquire --hold`"), ("77", "cannot be killed")]
    {
        let row = table.lines().find(|row| row.starts_with(&format!("| {code} |"))).expect("a row");
        assert!(row.contains(command), "{command} is not in {row}");
    }
}

#[test]
fn explain_goes_by_the_grace_that_run_goes_by() {
    for (ttl, grace) in [("20s", "2s"), ("700ms", "100ms")] {
        let explain = |more: &[&str]| {
            let mut command = Command::new(bellwether());
            command.args(["explain", "-o", "json", "--ttl", ttl]).args(more);
            json(&run_to_end(command))
        };
        assert_eq!(explain(&[]), explain(&["--grace", grace]), "ttl {ttl}");
    }
}

#[test]
fn a_ttl_that_a_store_rounds_up_is_explained_as_it_counts() {
    let explain = |ttl: &str| said(&["explain", "--backend", "kubernetes://jobs", "--ttl", ttl]);
    let rounded = explain("1500ms");
    assert!(rounded.starts_with("a ttl of 1.5s counts as 2s on this store\n"), "{rounded}");
    let as_it_is = explain("2s");
    assert_eq!(rounded.lines().skip(1).collect::<Vec<_>>(), as_it_is.lines().collect::<Vec<_>>());
}

#[test]
fn every_event_that_a_command_causes_is_in_the_reference() {
    let table = said(&["tables", "events"]);
    for row in
        ["| `child_started` | `pid` |", "| `child_exited` | `code` |", "| `missed` | `count`, `state` |"]
    {
        assert!(table.contains(row), "{row} is not in\n{table}");
    }
}
