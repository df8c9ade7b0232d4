//! What is printed of a world before it begins.

use std::fmt;

use super::{CandidatePlan, WorldOptions};
use crate::time::{MILLI, SECOND};

impl fmt::Display for WorldOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = if self.has_pairs() { ", two candidates of one in a process" } else { "" };
        writeln!(
            f,
            "seed {}, profile {:?}, store {:?}, elections {}{pairs}",
            self.seed, self.profile, self.store, self.elections
        )?;
        let candidates = self.plans.iter().enumerate();
        let candidates =
            candidates.flat_map(|(process, plan)| plan.candidates.iter().map(move |one| (process, one)));
        for (process, CandidatePlan { key, id, settings }) in candidates {
            let timing = settings.timing();
            let o = settings.options();
            writeln!(
                f,
                "  process {process}, {id} in election {}: ttl {:?} renew {:?} retry {:?} margin {:?} call {:?} grace of work {:?}",
                key.0,
                timing.ttl(),
                timing.renew(),
                timing.retry(),
                timing.margin(),
                timing.call_timeout(),
                timing.work_grace()
            )?;
            writeln!(
                f,
                "    failed renewals {:?} disconnect {:?} reconnect {:?} reacquire {} cooldown {:?} priority {}{} \
                 health {:?} validation {:?} settle {:?} stop {:?} breaker {:?} {:?}",
                o.failed_renewals,
                o.disconnect_grace,
                o.reconnect_grace,
                o.auto_reacquire,
                o.cooldown,
                o.priority,
                if o.preempt { " preempts" } else { "" },
                o.health_failures,
                o.validation,
                o.settle,
                o.stop_timeout,
                o.breaker,
                o.strategy
            )?;
        }
        writeln!(
            f,
            "  clocks {} to {} ppm, messages {}µs to {}µs, watch {:?}, crash proof {}, patience {}ms",
            self.ppm.0,
            self.ppm.1,
            self.latency.0 / 1_000,
            self.latency.1 / 1_000,
            self.watch,
            self.crash_proof,
            self.patience / MILLI
        )?;
        writeln!(f, "  of 10,000 messages: {:?}", self.net)?;
        writeln!(f, "  a fault every {}ms of {:?}", self.fault_every / MILLI, self.faults)?;
        writeln!(f, "  a whim every {}ms of {:?}", self.whim_every / MILLI, self.whims)?;
        write!(
            f,
            "  {}s of faults, {} at their end",
            self.span / SECOND,
            if self.ends_with_death { "the leader dies" } else { "nobody dies" }
        )
    }
}
