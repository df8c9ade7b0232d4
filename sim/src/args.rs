//! The command line.

use bellwether_sim::campaign::Campaign;
use bellwether_sim::options::StoreKind;

pub(crate) const HELP: &str = "\
bellwether-sim: the real election and the real lease, in worlds where everything goes wrong

  --seeds N       run N seeds
  --from S        starting at seed S (default 1)
  --store KIND    only seeds whose world has a `register`, `session` or `raft` store
  --threads N     on N threads (default: as many as there are cores)
  --seed S        run one seed: print its options and figures
  -v, --verbose   and everything that happened
  --stop-after N  stop after N violations (default 20)
  --until NAME    stop after a violation of this invariant; may be given several times
  -h, --help      this

`cargo xtask sim` takes two more:
  --bugs          plant every known bug, one at a time, until it is caught
  --bug NAME      with this one planted
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SimArgs {
    pub(crate) job: Job,
    pub(crate) verbose: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Job {
    Help,
    One(u64),
    Many(Campaign),
}

impl SimArgs {
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<SimArgs, String> {
        let mut args = args;
        let (mut seeds, mut seed) = (None, None);
        let mut campaign = Campaign::new(1, 0);
        let mut parsed = SimArgs { job: Job::Help, verbose: false };
        while let Some(arg) = args.next() {
            let mut number = |name: &str| {
                let value = args.next().ok_or(format!("{name} needs a number"))?;
                value.parse::<u64>().map_err(|_| format!("{name} needs a number, not `{value}`"))
            };
            match arg.as_str() {
                "--seeds" => seeds = Some(number("--seeds")?),
                "--from" => campaign.from = number("--from")?,
                "--threads" => campaign.threads = number("--threads")?.clamp(1, 256) as usize,
                "--stop-after" => campaign.violations_max = number("--stop-after")?.max(1) as usize,
                "--until" => {
                    campaign.until.push(args.next().ok_or("--until needs the name of an invariant")?)
                }
                "--seed" => seed = Some(number("--seed")?),
                "--store" => campaign.store = Some(store(&args.next().ok_or("--store needs a kind")?)?),
                "-v" | "--verbose" => parsed.verbose = true,
                "-h" | "--help" => return Ok(parsed),
                other => return Err(format!("`{other}` is not an option; --help lists them")),
            }
        }
        parsed.job = match (seeds, seed) {
            (Some(count), None) => Job::Many(Campaign { count, ..campaign }),
            (None, Some(seed)) => Job::One(seed),
            _ => return Err("say one of --seeds N and --seed S; --help has the rest".to_owned()),
        };
        Ok(parsed)
    }
}

fn store(name: &str) -> Result<StoreKind, String> {
    match name {
        "register" => Ok(StoreKind::Register),
        "session" => Ok(StoreKind::Session),
        "raft" => Ok(StoreKind::Raft),
        other => Err(format!("a store is `register`, `session` or `raft`, not `{other}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<SimArgs, String> {
        SimArgs::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn each_job_is_understood() {
        assert_eq!(parse("--seeds 5 --from 9").unwrap().job, Job::Many(Campaign::new(9, 5)));
        let all = "--seeds 5 --store session --threads 4 --stop-after 1 --until clones --until health";
        let (store, until) = (Some(StoreKind::Session), vec!["clones".to_owned(), "health".to_owned()]);
        let campaign = Campaign { store, threads: 4, violations_max: 1, until, ..Campaign::new(1, 5) };
        assert_eq!(parse(all).unwrap().job, Job::Many(campaign));
        assert_eq!(parse("--seed 7 -v").unwrap(), SimArgs { job: Job::One(7), verbose: true });
        assert_eq!(parse("-h").unwrap().job, Job::Help);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_way_out() {
        for (line, part) in [
            ("", "--help"),
            ("--seeds", "number"),
            ("--seed x", "not `x`"),
            ("--seed 1 --seeds 2", "one of"),
            ("--sed 1", "--help"),
            ("--seeds 1 --store disk", "`session`"),
        ] {
            assert!(parse(line).unwrap_err().contains(part), "{line}");
        }
    }
}
