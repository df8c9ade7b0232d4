//! The command line.

use bellwether_core::Bug;
use bellwether_sim::options::StoreKind;

pub(crate) const HELP: &str = "\
bellwether-sim: the real election and the real lease, in worlds where everything goes wrong

  --seeds N       run N seeds
  --from S        starting at seed S (default 1)
  --store KIND    only seeds whose world has a `register` or a `session` store
  --threads N     on N threads (default 2)
  --seed S        run one seed: print its options and figures
  -v, --verbose   and everything that happened
  --bug NAME      with a known bug put back in
  --bugs          put every known bug back in, one at a time, until it is caught
  -h, --help      this
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) job: Job,
    pub(crate) threads: usize,
    pub(crate) verbose: bool,
    pub(crate) planted: Option<Bug>,
    pub(crate) store: Option<StoreKind>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Job {
    Help,
    One(u64),
    Many { from: u64, count: u64 },
    Bugs,
}

impl Args {
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = args;
        let (mut seeds, mut from, mut seed, mut hunt) = (None, 1, None, false);
        let mut parsed = Args { job: Job::Help, threads: 2, verbose: false, planted: None, store: None };
        while let Some(arg) = args.next() {
            let mut number = |name: &str| {
                let value = args.next().ok_or(format!("{name} needs a number"))?;
                value.parse::<u64>().map_err(|_| format!("{name} needs a number, not `{value}`"))
            };
            match arg.as_str() {
                "--seeds" => seeds = Some(number("--seeds")?),
                "--from" => from = number("--from")?,
                "--threads" => parsed.threads = number("--threads")?.clamp(1, 256) as usize,
                "--seed" => seed = Some(number("--seed")?),
                "--bugs" => hunt = true,
                "--bug" => parsed.planted = Some(bug(&args.next().ok_or("--bug needs a name")?)?),
                "--store" => parsed.store = Some(store(&args.next().ok_or("--store needs a kind")?)?),
                "-v" | "--verbose" => parsed.verbose = true,
                "-h" | "--help" => return Ok(parsed),
                other => return Err(format!("`{other}` is not an option; --help lists them")),
            }
        }
        parsed.job = match (seeds, seed, hunt) {
            (Some(count), None, false) => Job::Many { from, count },
            (None, Some(seed), false) => Job::One(seed),
            (None, None, true) => Job::Bugs,
            _ => return Err("say one of --seeds N, --seed S, --bugs; --help has the rest".to_owned()),
        };
        Ok(parsed)
    }
}

fn store(name: &str) -> Result<StoreKind, String> {
    match name {
        "register" => Ok(StoreKind::Register),
        "session" => Ok(StoreKind::Session),
        other => Err(format!("a store is `register` or `session`, not `{other}`")),
    }
}

fn bug(name: &str) -> Result<Bug, String> {
    let found = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
    found.ok_or_else(|| format!("no bug is called `{name}`; they are {:?}", Bug::ALL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn each_job_is_understood() {
        assert_eq!(parse("--seeds 5 --from 9").unwrap().job, Job::Many { from: 9, count: 5 });
        let one = parse("--seed 7 -v --bug NoMargin").unwrap();
        assert_eq!((one.job, one.verbose, one.planted), (Job::One(7), true, Some(Bug::NoMargin)));
        assert_eq!(parse("--bugs --threads 4").unwrap().threads, 4);
        assert_eq!(parse("--seeds 5 --store session").unwrap().store, Some(StoreKind::Session));
        assert_eq!(parse("-h").unwrap().job, Job::Help);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_way_out() {
        for (line, part) in [
            ("", "--help"),
            ("--seeds", "number"),
            ("--seed x", "not `x`"),
            ("--seed 1 --bugs", "one of"),
            ("--sed 1", "--help"),
            ("--seeds 1 --store disk", "`session`"),
            ("--seed 1 --bug Gremlin", "NoMargin"),
        ] {
            assert!(parse(line).unwrap_err().contains(part), "{line}");
        }
    }
}
