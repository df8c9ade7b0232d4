//! The commands, in one table: `help` prints it and [`dispatch`] looks things up in it.

use crate::suggest::did_you_mean;
use crate::{Problem, Verdict, bench, env, formation, fuzz, lines, mutants, prove, sim, test, tidy};

struct Command {
    name: &'static str,
    synopsis: &'static str,
    what: &'static str,
    more: &'static str,
    run: fn(&[String]) -> Result<Verdict, Problem>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        synopsis: "test [--only NAME,…] [--postgres MAJORS] [--list]",
        what: "everything that has to hold: format, lints, tidy, all tests, simulator, docs",
        more: "Runs on a machine that has nothing but Rust and Go. A step that fails does not stop the others; what the\n\
               machine cannot provide fails by name. The last line is `N passed, N failed`.\n\n\
               --only NAME,…  run these steps and say at the end what was left out\n\
               --postgres MAJORS  run instead the tests of conformance, doctor, takeovers, epochs and tables on these majors\n\
               \u{20}                  of PostgreSQL, as 14,16 or 14-18; servers that are not installed are fetched by npm\n\
               --list         print the steps and run nothing",
        run: test::run,
    },
    Command {
        name: "tidy",
        synopsis: "tidy [--write]",
        what: "the rules of the house: dependencies, unsafe code, sizes, generated tables",
        more: "--write  bring the generated tables in the Markdown files up to date, and docs/performance.md with its figures",
        run: tidy::run,
    },
    Command {
        name: "sim",
        synopsis: "sim --seeds N [ARG…]",
        what: "the simulator, optimised; arguments go to it as they are",
        more: "`cargo xtask sim --help` is the simulator's own help.",
        run: sim::run,
    },
    Command {
        name: "formation",
        synopsis: "formation [--seed N] [--steps N]",
        what: "every way in which three nodes form a cluster, and random walks of five, optimised",
        more: "Explores each of its bounds to the end and prints it with the states, transitions and time; then random walks,\n\
               the planted bugs, and what every world ends in when nothing goes wrong any more. Takes some minutes and up to\n\
               a few GiB of memory. `cargo xtask test` runs the same with smaller bounds.\n\n\
               --seed N   the seed of the random walks; a new one each time if it is not given\n\
               --steps N  so many steps of random walks (10000000)",
        run: formation::run,
    },
    Command {
        name: "fuzz",
        synopsis: "fuzz [--minutes N] [TARGET…]",
        what: "feeds every parser of foreign bytes with inputs that nobody thought of",
        more: "Each target begins with its corpus in fuzz/corpus, and goes on where it was the last time. Prints how often each was\n\
               run and how much code it reached. `cargo xtask test` runs the corpus alone, without a fuzzer.\n\
               Installs cargo-fuzz if it is missing, and needs a C++ compiler for libFuzzer. The first build takes some minutes.\n\n\
               --minutes N  for all of them together (20)\n\
               TARGET…      only these, which fuzz/src/lib.rs lists",
        run: fuzz::run,
    },
    Command {
        name: "mutants",
        synopsis: "mutants [--file PATH] [--shard K/N]",
        what: "breaks core, lease, observations and sessions in small ways, and asks whether a test notices",
        more: "Says first how long it will take: more than an hour for all of it. Fails on a mutant that is neither caught\n\
               nor listed, with a reason, in xtask/mutants-accepted.txt. Leaves what it found in target/mutants.\n\
               Installs cargo-mutants if it is missing; arguments go to it as they are.\n\n\
               --file PATH   only this file; may be given several times\n\
               --shard K/N   only the K-th of N parts, from 0\n\
               --jobs N      so many at once",
        run: mutants::run,
    },
    Command {
        name: "prove",
        synopsis: "prove run|postgres|nats|kubernetes|raft|clients [OPTION…]",
        what: "the long proofs on the built command, optimised, with their figures",
        more: "run  leaders of `bellwether run` ended in every way there is, with a witness as their command: never two at\n\
               \u{20}    once, never an orphan, the next leader within the bound that `explain` prints\n\
               postgres  leaders of `bellwether run` on PostgreSQL that are stopped, or cut off in a network namespace, at\n\
               \u{20}    a ttl of 2s: never two at once, replaced within the ttl and 300 ms (needs root)\n\
               nats  the same on NATS in every profile, on one server and on three, cut off also together with one of\n\
               \u{20}    the three, and leaders that are killed, replaced within the ttl and 100 ms; runs of\n\
               \u{20}    `bellwether status` that must change no revision of the bucket (needs root)\n\
               raft  leaders of a Raft cluster that are killed, stopped, cut off and asked to leave under clients on every\n\
               \u{20}    machine: one order explains what all of them were told; the conformance suite on a cluster that has\n\
               \u{20}    just lost its leader (needs root)\n\
               clients  clients in Python, Go and TypeScript, and their agents, that are killed, stopped and asked to hand\n\
               \u{20}    over, --rounds N of each (50): never two at work at once\n\n\
               Of run:\n\
               --rounds N  so many rounds of every way in turn, and a quarter as many in a container and as an\n\
               \u{20}           ordinary user (200)\n\
               --kills N   so many kills -9 with a grandchild at work (2000)\n\
               --looks N   so many runs of `bellwether status` that must change no byte of the store (1000)\n\
               --busy N    so many processes in everybody's way; then only safety is asked for, not the bound (0)\n\n\
               Of postgres and nats:\n\
               --runs N     so many of each kind (50)\n\
               --at-once N  so many of them side by side (5; nats 10)\n\
               --looks N    so many runs of `bellwether status` (1000; nats only)\n\n\
               Of raft:\n\
               --rounds N  so many leaders of each kind (100)\n\
               --suites N  so many runs of the conformance suite; in three, every case meets every fault (3)",
        run: prove::run,
    },
    Command {
        name: "bench",
        synopsis: "bench [NAME…] [--write] [-- MEASURE…]",
        what: "the benchmarks, all or those named, and a page of their figures",
        more: "Builds the other makes that are measured beside ours, runs one benchmark after the other, prints what was compared,\n\
               ratios first, and keeps all rows in target/bench/RUN.json.\n\n\
               --write      write docs/performance.md with its figures and plot, unless a benchmark failed\n\
               --last       measure nothing: take the rows of the last run\n\
               --add        add to the last run, in place of what it has of the same benchmarks; on the same machine, with the\n\
               \u{20}            same versions\n\
               -- MEASURE…  these measures of one benchmark alone (kubernetes, nats, postgres, raft)",
        run: bench::run,
    },
    Command {
        name: "lines",
        synopsis: "lines [DIR]",
        what: "how many lines of product code each crate has",
        more: "Counts what is published (crates/ and backends/), without tests, comments, blank lines and lines of\n\
               brackets alone. DIR is another checkout to count instead, to compare with.",
        run: lines::run,
    },
    Command {
        name: "env",
        synopsis: "env [--install]",
        what: "versions of what is used here, and what is missing",
        more: "--install  install or build what is missing, as `cargo xtask test` does before the step that needs it",
        run: env::run,
    },
    Command {
        name: "help",
        synopsis: "help [COMMAND]",
        what: "this page, or more about one command",
        more: "",
        run: help,
    },
];

/// Runs the command that the arguments name.
pub(crate) fn dispatch(args: &[String]) -> Result<Verdict, Problem> {
    let Some((name, rest)) = args.split_first() else {
        print!("{}", overview());
        // Nothing was asked for, so nothing was done; a script that forgot the command should notice.
        return Ok(Verdict::Bad);
    };
    if matches!(name.as_str(), "-h" | "--help") {
        return help(rest);
    }
    let command = find(name)?;
    // The simulator has options of its own, so its help is its own too.
    if command.name != "sim" && rest.iter().any(|arg| matches!(arg.as_str(), "-h" | "--help")) {
        print!("{}", page(command));
        return Ok(Verdict::Good);
    }
    (command.run)(rest)
}

fn find(name: &str) -> Result<&'static Command, Problem> {
    COMMANDS.iter().find(|command| command.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, COMMANDS.iter().map(|command| command.name));
        format!("there is no command `{name}`{hint}; `cargo xtask help` lists them")
    })
}

/// What the command takes, as its help says it; `None` where there is no such command.
pub(crate) fn describe(name: &str) -> Option<String> {
    find(name).ok().map(page)
}

fn help(args: &[String]) -> Result<Verdict, Problem> {
    match args {
        [] => print!("{}", overview()),
        [name, ..] => print!("{}", page(find(name)?)),
    }
    Ok(Verdict::Good)
}

fn overview() -> String {
    let width = COMMANDS.iter().map(|command| command.synopsis.chars().count()).max().unwrap_or(0);
    let mut text = String::from("What is done to the project rather than by it.\n\n");
    for Command { synopsis, what, .. } in COMMANDS {
        text += &format!("  cargo xtask {synopsis:width$}  {what}\n");
    }
    text += "\nBefore sending a change: `cargo xtask test`. While working on one part of it:\n\
             `cargo xtask test --only core,tidy`; `cargo xtask test --list` has the names.\n";
    text
}

fn page(command: &Command) -> String {
    let more = if command.more.is_empty() { String::new() } else { format!("\n{}\n", command.more) };
    format!("cargo xtask {}\n\n{}\n{more}", command.synopsis, command.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_suggests_the_nearest() {
        let problem = dispatch(&["tset".to_owned()]).unwrap_err();
        assert!(problem.contains("did you mean `test`"), "{problem}");
        let problem = dispatch(&["deploy-everything".to_owned()]).unwrap_err();
        assert!(!problem.contains("did you mean"), "{problem}");
    }

    #[test]
    fn every_command_is_in_the_overview_and_has_a_page() {
        for command in COMMANDS {
            assert!(overview().contains(command.synopsis));
            assert!(page(command).contains(command.what));
            assert!(command.synopsis.starts_with(command.name));
        }
    }
}
