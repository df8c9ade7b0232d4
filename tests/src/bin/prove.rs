//! The long series: `cargo xtask prove` builds this optimised and runs it.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match linux::read(&args) {
        Ok(proof) => proof(),
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
    use std::process::{Child, Command, ExitCode};

    use bellwether_deadman::boot_now;
    use bellwether_support::servers::kubernetes::Server;
    use bellwether_support::servers::nats::Version;
    use bellwether_tests::clients::{self, ClientFigures, Language, Trouble};
    use bellwether_tests::mixed_election::{self, Make, MixedElection};
    use bellwether_tests::raft::{Conformance, Fault, Storm};
    use bellwether_tests::series::{Ending, Figures, Series};
    use bellwether_tests::silent_leader::{Kind, Profile, Silenced, Silences};
    use bellwether_tests::{
        Surroundings, untouched_by_status, unwritten_by_status, unwritten_lease_by_status,
    };

    /// Between two lines that say how far it is.
    const TELL_EVERY: usize = 100;

    type Proof = Box<dyn FnOnce() -> ExitCode>;

    /// What the arguments ask for.
    pub(crate) fn read(args: &[String]) -> Result<Proof, String> {
        let (proof, options) = args.split_first().ok_or("the first argument is what to prove")?;
        match proof.as_str() {
            "run" => {
                let known = [("--rounds", 200), ("--kills", 2_000), ("--looks", 1_000), ("--busy", 0)];
                let [rounds, kills, looks, busy] = numbers(options, known)?;
                Ok(Box::new(move || verdict(Plan { rounds, kills, looks, busy }.prove())))
            }
            "postgres" => {
                let [runs, at_once] = numbers(options, [("--runs", 50), ("--at-once", 5)])?;
                Ok(Box::new(move || verdict(silences(&[Kind::Postgres], runs, at_once))))
            }
            "nats" => {
                let [runs, at_once, looks] =
                    numbers(options, [("--runs", 50), ("--at-once", 10), ("--looks", 1_000)])?;
                Ok(Box::new(move || verdict(silences(&on_nats(), runs, at_once) & unwritten(looks))))
            }
            "kubernetes" => {
                let known = [("--runs", 20), ("--at-once", 4), ("--handovers", 50), ("--looks", 1_000)];
                let [runs, at_once, handovers, looks] = numbers(options, known)?;
                let kinds = [false, true].map(|short_watches| Kind::Kubernetes { short_watches });
                Ok(Box::new(move || {
                    verdict(silences(&kinds, runs, at_once) & shared(handovers) & unwritten_lease(looks))
                }))
            }
            "raft" => {
                let [rounds, suites] = numbers(options, [("--rounds", 100), ("--suites", 3)])?;
                Ok(Box::new(move || verdict(conforms(suites) & storm(rounds))))
            }
            "clients" => {
                let [rounds] = numbers(options, [("--rounds", 50)])?;
                Ok(Box::new(move || verdict(clients(rounds))))
            }
            other => Err(format!("`{other}` is none of run, postgres, nats, kubernetes, raft, clients")),
        }
    }

    fn numbers<const N: usize>(args: &[String], known: [(&str, usize); N]) -> Result<[usize; N], String> {
        let mut values = known.map(|(_, default)| default);
        let mut args = args.iter();
        while let Some(name) = args.next() {
            let Some(at) = known.iter().position(|(known, _)| known == name) else {
                return Err(format!("`{name}` is none of {}", known.map(|(name, _)| name).join(", ")));
            };
            let number = args.next().and_then(|value| value.parse().ok());
            values[at] = number.ok_or_else(|| format!("{name} needs a number"))?;
        }
        Ok(values)
    }

    fn verdict(good: bool) -> ExitCode {
        println!("{}", if good { "all of it holds" } else { "FAILED" });
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Every profile on one current server and on three, and the default one on what Debian ships.
    fn on_nats() -> Vec<Kind> {
        let all = [Profile::Native, Profile::Cluster, Profile::Leader];
        let old = Kind::Nats { profile: Profile::Native, version: Version::Old, nodes: 1 };
        let of = |nodes: usize| all.map(|profile| Kind::nats(profile, nodes));
        of(1).into_iter().chain([old]).chain(of(3)).collect()
    }

    /// Leaders on a server that fall silent.
    fn silences(kinds: &[Kind], runs: usize, at_once: usize) -> bool {
        if runs == 0 {
            return true;
        }
        println!("{}", Silenced::heading());
        let mut good = true;
        for kind in kinds {
            for how in kind.ways() {
                // On servers of its own: one that was cut off upsets its cluster for a while when it is back.
                let Some(mut silences) = Silences::new(*kind) else { return false };
                let silenced = silences.series(*how, runs, at_once.max(1));
                println!("{silenced}");
                let complaints = silenced.complaints().iter().chain(silenced.late());
                complaints.for_each(|complaint| println!("FAILED {complaint}"));
                good &= silenced.holds();
            }
        }
        good
    }

    /// The conformance suite so often, on a Raft cluster that has just lost its leader: in three runs, every case meets every fault.
    fn conforms(suites: usize) -> bool {
        if suites == 0 {
            return true;
        }
        let Some(suite) = Conformance::begin() else { return false };
        let began = boot_now();
        let mut good = true;
        for number in 0..suites {
            let figures = suite.round(number);
            println!(
                "# the conformance suite on a Raft cluster whose leaders fail, run {}\n{figures}",
                number + 1
            );
            figures.complaints().iter().for_each(|complaint| println!("FAILED {complaint}"));
            good &= figures.complaints().is_empty();
        }
        suite.end();
        eprintln!("raft: {suites} runs of the suite in {:.0?}", boot_now().since(began));
        good
    }

    /// Leaders of a Raft cluster that are killed, stopped, cut off and asked to leave under clients, so often each.
    fn storm(rounds: usize) -> bool {
        if rounds == 0 {
            return true;
        }
        let Some(mut storm) = Storm::begin() else { return false };
        let began = boot_now();
        for round in 1..=rounds {
            Fault::ALL.into_iter().for_each(|fault| storm.round(fault));
            if (round * Fault::ALL.len()).is_multiple_of(TELL_EVERY) {
                eprintln!("raft: {round} of {rounds} rounds after {:.0?}", boot_now().since(began));
            }
        }
        let took = boot_now().since(began);
        let figures = storm.end();
        println!("# leaders of a Raft cluster that fail under clients, {took:.0?}\n{figures}");
        figures.complaints.iter().for_each(|complaint| println!("FAILED {complaint}"));
        figures.complaints.is_empty() && figures.done > 0
    }

    /// Clients in other languages that are killed, stopped and handed over, so often each.
    fn clients(rounds: usize) -> bool {
        println!("{}", ClientFigures::HEADING);
        let mut good = true;
        for language in Language::ALL {
            for trouble in Trouble::ALL {
                let figures = clients::series(language, trouble, rounds);
                println!("{:<12}{trouble:<10}{figures}", language.name());
                figures.complaints().iter().for_each(|complaint| println!("FAILED {complaint}"));
                good &= figures.complaints().is_empty();
            }
        }
        good
    }

    /// Looks at a bucket, by the number of its last write.
    fn unwritten(looks: usize) -> bool {
        let (before, after) = unwritten_by_status(looks);
        println!("{looks} times `bellwether status`: the bucket's last revision was {before} and is {after}");
        before == after
    }

    /// An election with candidates of client-go and ours: after that many handovers, a fifth as many leaders of ours are stopped and
    /// as many cut off, and a few of client-go.
    fn shared(handovers: usize) -> bool {
        if handovers == 0 {
            return true;
        }
        let Some(election) = MixedElection::new() else { return false };
        let plan = mixed_election::Plan { handovers, silences: handovers.div_ceil(5), faults: 3 };
        let figures = election.hold(plan);
        println!("# client-go and bellwether on one Lease\n{figures}");
        figures.complaints().iter().for_each(|complaint| println!("FAILED {complaint}"));
        let led = [Make::Ours, Make::ClientGo].map(|make| figures.leaderships(make));
        figures.complaints().is_empty() && !led.contains(&0) && figures.risen_through_client_go() > 0
    }

    /// Looks at a Lease, by its resource version and by what the API server was asked for.
    fn unwritten_lease(looks: usize) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (before, after, writes) = runtime.block_on(async {
            let server = Server::start().await;
            unwritten_lease_by_status(&server, looks).await
        });
        println!(
            "{looks} times `bellwether status`: the resource version was {before} and is {after}, the audit log has {} writes",
            writes.len()
        );
        writes.iter().for_each(|write| println!("FAILED {write:?}"));
        before == after && writes.is_empty()
    }

    struct Plan {
        rounds: usize,
        kills: usize,
        looks: usize,
        /// So many processes that are in everybody's way.
        busy: usize,
    }

    impl Plan {
        fn prove(&self) -> bool {
            let _in_the_way = Busy::with(self.busy);
            let mut good = true;
            let (part, grandchild) = (self.rounds / 4, [Ending::GrandchildWorks]);
            for (title, surroundings, ways, times) in [
                ("every way in turn", Surroundings::Plain, None, self.rounds),
                ("as process 1 of a container", Surroundings::Container, None, part),
                ("as an ordinary user", Surroundings::Nobody, None, part),
                ("kill after kill", Surroundings::Plain, Some(&grandchild[..]), self.kills),
            ] {
                let all = Ending::all(surroundings);
                let figures = series(title, surroundings, ways.unwrap_or(&all), times);
                // Where others have the processors, nobody can be asked to be in time.
                good &= figures.is_some_and(|figures| {
                    if self.busy > 0 { figures.is_safe() } else { figures.complaints().is_empty() }
                });
            }
            let changed = untouched_by_status(self.looks);
            println!(
                "{} times `bellwether status`: {} files of the store changed",
                self.looks,
                changed.len()
            );
            good && changed.is_empty()
        }
    }

    /// `None` where these surroundings are not to be had.
    fn series(title: &str, surroundings: Surroundings, ways: &[Ending], times: usize) -> Option<Figures> {
        let ways: Vec<Ending> = ways.iter().copied().cycle().take(times).collect();
        let Some(first) = ways.first() else { return Some(Figures::default()) };
        let mut series = Series::new(surroundings, *first)?;
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
        Some(figures)
    }

    /// Processes that never sleep, or start others all the time, by turns. Each has a session of its own, and with it a share of
    /// the processors of its own. Ended when dropped.
    struct Busy(Vec<Child>);

    impl Busy {
        fn with(count: usize) -> Busy {
            let scripts = ["while :; do :; done", "while :; do /bin/true; done"].into_iter().cycle();
            let start = |script| Command::new("setsid").args(["sh", "-c", script]).spawn();
            Busy(scripts.take(count).map(|script| start(script).expect("setsid and sh are there")).collect())
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
