//! `cargo xtask env`: what a report of a failure should start with, and all that tests need from the machine.

use crate::tools::{self, Tool};
use crate::{Problem, Verdict, process};

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let get = match args {
        [] => Tool::find,
        [install] if install == "--install" => Tool::provide,
        _ => return Err(format!("`env` takes nothing but --install, and not `{}`", args.join(" "))),
    };
    let unknown = || "unknown".to_owned();
    let cores = std::thread::available_parallelism().map_or_else(|_| unknown(), |cores| cores.to_string());
    let basics = [
        ("rustc", process::version(&["rustc", "--version"]).unwrap_or_else(unknown)),
        ("cargo", process::version(&["cargo", "--version"]).unwrap_or_else(unknown)),
        ("system", process::version(&["uname", "-srm"]).unwrap_or_else(unknown)),
        ("cores", cores),
    ];
    for (name, value) in basics {
        println!("{name:14} {value}");
    }
    let mut verdict = Verdict::Good;
    for tool in tools::ALL {
        match get(tool) {
            Ok(version) => println!("{:14} {version}  ({})", tool.name, tool.used_for),
            Err(problem) => {
                verdict = Verdict::Bad;
                println!("{:14} {problem}  ({})", tool.name, tool.used_for);
            }
        }
    }
    Ok(verdict)
}
