//! `cargo xtask env`: what a report of a failure should start with.

use crate::{Problem, Verdict, process, tools};

pub(crate) fn run(_args: &[String]) -> Result<Verdict, Problem> {
    let unknown = || "unknown".to_owned();
    let cores = std::thread::available_parallelism().map_or_else(|_| unknown(), |cores| cores.to_string());
    let basics = [
        ("rustc", process::version(&["rustc", "--version"]).unwrap_or_else(unknown)),
        ("cargo", process::version(&["cargo", "--version"]).unwrap_or_else(unknown)),
        ("system", process::version(&["uname", "-srm"]).unwrap_or_else(unknown)),
        ("cores", cores),
    ];
    for (name, value) in basics {
        println!("{name:10} {value}");
    }
    let mut verdict = Verdict::Good;
    for tool in tools::ALL {
        match tool.find() {
            Ok(version) => println!("{:10} {version}  ({})", tool.name, tool.used_for),
            Err(problem) => {
                verdict = Verdict::Bad;
                println!("{:10} {problem}  ({})", tool.name, tool.used_for);
            }
        }
    }
    Ok(verdict)
}
