//! The first lines of each README work as they stand there.

use std::path::Path;

use bellwether_tests::Candidate;
use bellwether_tests::clients::{Language, address};
use rustix::process::Signal;

/// What the READMEs name.
const ADDRESS: &str = "unix:/run/reports.sock";

/// The first block of code of this language.
fn first_block(readme: &Path, language: &str) -> String {
    let text = std::fs::read_to_string(readme).expect("a README");
    let (_, after) = text.split_once(&format!("```{language}\n")).expect("a block of code");
    after.split_once("```").expect("its end").0.to_owned()
}

/// Runs a program against a real agent until it says that it works, and asks it to hand over.
fn works(language: Language, of: &str, make: impl Fn(&Path, &str) -> std::process::Command) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let http = address(directory.path(), "agent");
    let mut agent = Candidate::on_file(
        &directory.path().join("store"),
        "reports",
        "host-1",
        &["--ttl", "1s", "--for-clients", "--http", &http],
    );
    let code_of = match of {
        "typescript" => "ts",
        other => other,
    };
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients").join(of).join("README.md");
    let code = first_block(&readme, code_of);
    assert!(code.contains(ADDRESS), "{code}");
    let command = make(directory.path(), &code.replace(ADDRESS, &http));
    let mut child = command_with_output(command);
    let said = first_words(&mut child);
    assert!(said.starts_with("working under epoch 1"), "{}: {said:?}", language.name());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::KILL)
        .expect("our own child");
    child.wait().expect("our own child");
    // Its process has ended, and so has its work.
    agent.expect("released");
}

fn command_with_output(mut command: std::process::Command) -> std::process::Child {
    command
        .stdout(std::process::Stdio::piped())
        .stdin(std::process::Stdio::null())
        .spawn()
        .expect("it starts")
}

fn first_words(child: &mut std::process::Child) -> String {
    use std::io::BufRead;
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("text");
    line
}

#[test]
fn of_python() {
    works(Language::Python, "python", |directory, code| {
        let file = directory.join("first.py");
        std::fs::write(&file, code).expect("our own directory");
        let mut command = Language::Python.script(&file);
        command.env("PYTHONUNBUFFERED", "1");
        command
    });
}

#[test]
fn of_go() {
    works(Language::Go, "go", |directory, code| {
        let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/go");
        let client = client.canonicalize().expect("it is there");
        let name = "github.com/bellwether-rs/bellwether/clients/go";
        let module = format!(
            "module first\n\ngo 1.21\n\nrequire {name} v0.0.0\n\nreplace {name} => {}\n",
            client.display()
        );
        std::fs::write(directory.join("go.mod"), module).expect("our own directory");
        std::fs::write(directory.join("main.go"), code).expect("our own directory");
        std::process::Command::new(Language::Go.go_program("first", directory))
    });
}

#[test]
fn of_typescript() {
    works(Language::TypeScript, "typescript", |directory, code| {
        let file = directory.join("first.mjs");
        let code = code.replace("\"bellwether-client\"", "\"./dist/bellwether.js\"");
        std::fs::write(&file, code).expect("our own directory");
        Language::TypeScript.script(&file)
    });
}
