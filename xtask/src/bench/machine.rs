//! What a page of figures says of the machine and of the versions: enough to read the figures by, and nothing that identifies a host.

use std::fs;

use crate::metadata::Workspace;
use crate::process;
use crate::tools::Tool;

/// In the order in which they are listed.
pub(super) fn facts(workspace: &Workspace, tools: &[&'static Tool]) -> Vec<(String, String)> {
    let unknown = || "unknown".to_owned();
    let version = |probe: &[&str]| process::version(probe).unwrap_or_else(unknown);
    let cores = std::thread::available_parallelism().map_or_else(|_| unknown(), |cores| cores.to_string());
    let mut facts = vec![
        ("cores".to_owned(), cores),
        ("memory".to_owned(), memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default())),
        ("kernel".to_owned(), without_build(&version(&["uname", "-srm"]))),
        ("rustc".to_owned(), version(&["rustc", "--version"])),
    ];
    let ours = workspace.packages.iter().find(|package| package.name == "bellwether");
    facts.push(("Bellwether".to_owned(), ours.map_or_else(unknown, |package| package.version.clone())));
    for tool in tools {
        facts.push((tool.name.to_owned(), without_place(&tool.find().unwrap_or_else(|_| unknown()))));
    }
    facts
}

/// In whole GiB, from what Linux says of it.
fn memory(meminfo: &str) -> String {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{:.0} GiB", kib / 1_048_576.0))
}

/// The version alone: what follows names who built it, and for which machines.
fn without_build(kernel: &str) -> String {
    let words = kernel.split(' ').map(|word| word.split('-').next().unwrap_or_default());
    words.collect::<Vec<_>>().join(" ")
}

/// Tools add the directory that they were found in, which is this machine's own affair.
fn without_place(version: &str) -> String {
    version.split(" in ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_whole_gibibytes() {
        assert_eq!(memory("MemTotal:       24684544 kB\nMemFree: 1 kB\n"), "24 GiB");
        assert_eq!(memory("nothing"), "unknown");
    }

    #[test]
    fn a_kernel_is_told_by_its_version_alone() {
        assert_eq!(without_build("Linux 6.1.0-21-cloud-amd64 x86_64"), "Linux 6.1.0 x86_64");
        assert_eq!(without_build("unknown"), "unknown");
    }

    #[test]
    fn where_a_tool_was_found_is_left_out() {
        assert_eq!(without_place("etcd Version: 3.5.16 in /usr/bin"), "etcd Version: 3.5.16");
        assert_eq!(without_place("unknown"), "unknown");
    }
}
