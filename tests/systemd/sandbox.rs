//! What a unit forbids, without systemd: another user without capabilities, and a filter of system calls made of the unit's own lines.
//!
//! The sets of system calls are those of the systemd that is installed (`systemd-analyze syscall-filter`). A script installs the filter, because the
//! call is `unsafe` here; it refuses what systemd's own filters refuse for `SystemCallFilter`, `RestrictNamespaces`, `RestrictAddressFamilies`
//! and `MemoryDenyWriteExecute`.

use std::process::Command;

use crate::units::settings;

/// Takes the settings as `NAME=VALUE` up to `--`, and becomes the command after it.
const SANDBOX: &str = r##"
import ctypes, os, re, struct, subprocess, sys
NOBODY = 65534

end = sys.argv.index("--")
unit = {}
for setting in sys.argv[1:end]:
    name, _, value = setting.partition("=")
    unit.setdefault(name, []).append(value)

headers = ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/aarch64-linux-gnu/asm/unistd_64.h",
           "/usr/include/asm-generic/unistd.h"]
header = next(path for path in headers if os.path.exists(path))
numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", open(header).read())}

def members(group):
    if not group.startswith("@"):
        return {group}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", group], capture_output=True, text=True, check=True)
    lines = [line.strip() for line in listed.stdout.splitlines()[1:]]
    return set().union(*(members(line) for line in lines if line and not line.startswith("#")))

allowed = set()
for value in unit.get("SystemCallFilter", []):
    for group in value.lstrip("~").split():
        allowed = allowed - members(group) if value.startswith("~") else allowed | members(group)

LOAD, JEQ, JSET, RET = 0x20, 0x15, 0x45, 0x06
ALLOW, EPERM, ENOSYS, EAFNOSUPPORT = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38, 0x00050000 | 97
NR, FIRST, THIRD = 0, 16, 32
program = []
def add(code, value, yes=0, no=0):
    program.append(struct.pack("HBBI", code, yes, no, value & 0xFFFFFFFF))
def refuse_if(call, argument, test, with_):
    if call in numbers:
        add(LOAD, NR); add(JEQ, numbers[call], 0, len(test) + 2)
        add(LOAD, argument); [add(*one) for one in test]; add(RET, with_)

NAMESPACES = 0x7E020000
if unit.get("RestrictNamespaces") == ["yes"]:
    refuse_if("clone", FIRST, [(JSET, NAMESPACES, 0, 1)], EPERM)
    refuse_if("unshare", FIRST, [], EPERM)
    refuse_if("setns", FIRST, [], EPERM)
    # Its flags are out of reach of a filter.
    refuse_if("clone3", FIRST, [], ENOSYS)
if unit.get("MemoryDenyWriteExecute") == ["yes"]:
    refuse_if("mmap", THIRD, [(JSET, 2, 0, 2), (JSET, 4, 0, 1)], EPERM)
    refuse_if("mprotect", THIRD, [(JSET, 4, 0, 1)], EPERM)
if "RestrictAddressFamilies" in unit:
    families = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
    wanted = [families[name] for name in unit["RestrictAddressFamilies"][0].split()]
    refuse_if("socket", FIRST, [(JEQ, family, len(wanted) - place, 0) for place, family in enumerate(wanted)], EAFNOSUPPORT)
add(LOAD, NR)
for call in sorted(allowed & set(numbers)):
    add(JEQ, numbers[call], 0, 1); add(RET, ALLOW)
add(RET, EPERM)

libc = ctypes.CDLL(None, use_errno=True)
PR_CAPBSET_DROP = 24
for capability in range(64):
    libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
os.setgroups([]); os.setresgid(NOBODY, NOBODY, NOBODY); os.setresuid(NOBODY, NOBODY, NOBODY)
code = b"".join(program)
filter_ = ctypes.create_string_buffer(code)
description = struct.pack("HxxxxxxP", len(program), ctypes.addressof(filter_))
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, description, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[end + 1], sys.argv[end + 1:])
"##;

/// The command, as nobody, under what the unit forbids. Without `RestrictSUIDSGID`, the mounts, and what the kernel refuses to nobody anyway.
pub(crate) fn sandboxed(unit: &str, words: &[String]) -> Command {
    assert_eq!(settings(unit, "CapabilityBoundingSet"), [""], "this sandbox leaves no capability");
    let mut command = Command::new("python3");
    command.args(["-c", SANDBOX]);
    for name in
        ["SystemCallFilter", "RestrictNamespaces", "RestrictAddressFamilies", "MemoryDenyWriteExecute"]
    {
        let values = settings(unit, name);
        assert!(!values.is_empty(), "{unit} does not set {name}");
        command.args(values.iter().map(|value| format!("{name}={value}")));
    }
    command.arg("--").args(words);
    command
}
