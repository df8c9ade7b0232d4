//! The long series: `cargo xtask prove run` builds this optimised and runs it.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match linux::Plan::read(&args) {
        Ok(plan) => plan.prove(),
        Err(sentence) => {
            eprintln!("prove: {sentence}");
            ExitCode::from(64)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("prove: the guard of a command is there on Linux only");
    ExitCode::from(64)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::ExitCode;

    use bellwether_deadman::boot_now;
    use bellwether_tests::series::{Series, Way};
    use bellwether_tests::{Surroundings, untouched_by_status};

    /// Between two lines that say how far it is.
    const TELL_EVERY: usize = 100;

    pub(crate) struct Plan {
        rounds: usize,
        kills: usize,
        looks: usize,
    }

    impl Plan {
        pub(crate) fn read(args: &[String]) -> Result<Plan, String> {
            let mut plan = Plan { rounds: 200, kills: 2_000, looks: 1_000 };
            let mut args = args.iter();
            if args.next().map(String::as_str) != Some("run") {
                return Err("the first argument is what to prove: run".to_owned());
            }
            while let Some(name) = args.next() {
                let field = match name.as_str() {
                    "--rounds" => &mut plan.rounds,
                    "--kills" => &mut plan.kills,
                    "--looks" => &mut plan.looks,
                    other => return Err(format!("`{other}` is none of --rounds, --kills, --looks")),
                };
                let number = args.next().and_then(|value| value.parse().ok());
                *field = number.ok_or_else(|| format!("{name} needs a number"))?;
            }
            Ok(plan)
        }

        pub(crate) fn prove(&self) -> ExitCode {
            let mut good = true;
            let (part, grandchild) = (self.rounds / 4, [Way::GrandchildWorks]);
            for (title, surroundings, ways, times) in [
                ("every way in turn", Surroundings::Plain, None, self.rounds),
                ("as process 1 of a container", Surroundings::Container, None, part),
                ("as an ordinary user", Surroundings::Nobody, None, part),
                ("kill after kill", Surroundings::Plain, Some(&grandchild[..]), self.kills),
            ] {
                let all = Way::all(surroundings);
                good &= series(title, surroundings, ways.unwrap_or(&all), times);
            }
            let changed = untouched_by_status(self.looks);
            println!(
                "{} times `bellwether status`: {} files of the store changed",
                self.looks,
                changed.len()
            );
            good &= changed.is_empty();
            println!("{}", if good { "all of it holds" } else { "FAILED" });
            if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }

    fn series(title: &str, surroundings: Surroundings, ways: &[Way], times: usize) -> bool {
        let ways: Vec<Way> = ways.iter().copied().cycle().take(times).collect();
        let Some(first) = ways.first() else { return true };
        let Some(mut series) = Series::new(surroundings, *first) else { return false };
        let began = boot_now();
        for (at, way) in ways.iter().enumerate() {
            series.round(*way, *ways.get(at + 1).unwrap_or(way));
            if (at + 1) % TELL_EVERY == 0 {
                eprintln!("{title}: {} of {times} after {:.0?}", at + 1, boot_now().since(began));
            }
        }
        let took = boot_now().since(began);
        let figures = series.end();
        println!("# {title}, {took:.0?}\n{figures}");
        for complaint in figures.complaints() {
            println!("FAILED {complaint}");
        }
        figures.complaints().is_empty()
    }
}
