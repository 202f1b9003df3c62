//! Starts and calls with the share of a processor that Lambda gives a function for its memory.

use std::{error::Error, path::Path, time::Duration};

use crate::{
    contestants::{Contestant, Id, compiled},
    cpu_group::{Hierarchy, Share},
    function::Function,
    measure::check,
    spread::{Spread, StartSpreads, Starts},
};

const COLD_ROUNDS: usize = 30;
const WARM_ROUNDS: usize = 3;
const CALLS_PER_ROUND: usize = 200;

/// The memory of functions, in megabytes.
const MEMORIES: [u32; 3] = [128, 512, 1769];
const CONTESTANTS: [Id; 4] = [Id::BareCurrentThread, Id::Oxp, Id::McpLegacy, Id::Rmcp];

/// The results, or why the machine cannot measure them.
pub(crate) enum Shares {
    Measured(Vec<Row>),
    Unavailable(String),
}

/// The results of one contestant with one share.
pub(crate) struct Row {
    pub(crate) megabytes: u32,
    pub(crate) id: Id,
    pub(crate) name: &'static str,
    pub(crate) starts: StartSpreads,
    pub(crate) warm: Spread,
    /// The share of the periods of warm calls in which the quota was used up.
    pub(crate) throttled: f64,
}

pub(crate) fn measure(programs: &Path) -> Result<Shares, Box<dyn Error>> {
    let hierarchy = match Hierarchy::find() {
        Ok(hierarchy) => hierarchy,
        Err(error) => return Ok(Shares::Unavailable(error.to_string())),
    };
    let mut contestants = compiled(programs);
    contestants.retain(|contestant| CONTESTANTS.contains(&contestant.id));
    let mut rows = Vec::new();
    for megabytes in MEMORIES {
        rows.extend(with_share(&contestants, &hierarchy, Share { megabytes })?);
        eprintln!("share of {megabytes} MB: done");
    }
    Ok(Shares::Measured(rows))
}

fn with_share(
    contestants: &[Contestant],
    hierarchy: &Hierarchy,
    share: Share,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut starts: Vec<_> = contestants.iter().map(|_| Starts::default()).collect();
    for _ in 0..COLD_ROUNDS {
        for (contestant, starts) in contestants.iter().zip(&mut starts) {
            let function = Function::start_limited(&contestant.start, hierarchy, share)?;
            let (replies, _) = function.run(std::slice::from_ref(&contestant.event));
            check(&replies, contestant.expected)?;
            starts.push(function.cold_start, replies[0].latency);
        }
    }
    let warm = warm(contestants, hierarchy, share)?;
    let all = contestants.iter().zip(starts).zip(warm);
    let row = |((contestant, starts), warm): ((&Contestant, Starts), Warm)| Row {
        megabytes: share.megabytes,
        id: contestant.id,
        name: contestant.name,
        starts: starts.spreads(),
        warm: Spread::of(warm.latencies),
        throttled: warm.throttled,
    };
    Ok(all.map(row).collect())
}

#[derive(Default)]
struct Warm {
    latencies: Vec<Duration>,
    throttled: f64,
}

fn warm(
    contestants: &[Contestant],
    hierarchy: &Hierarchy,
    share: Share,
) -> Result<Vec<Warm>, Box<dyn Error>> {
    let start = |it: &Contestant| Function::start_limited(&it.start, hierarchy, share);
    let functions: Vec<_> = contestants.iter().map(start).collect::<Result<_, _>>()?;
    let mut figures: Vec<_> = contestants.iter().map(|_| Warm::default()).collect();
    for round in 0..=WARM_ROUNDS {
        let all = contestants.iter().zip(&functions).zip(&mut figures);
        for ((contestant, function), figures) in all {
            let events = vec![contestant.event.clone(); CALLS_PER_ROUND];
            let (replies, _) = function.run(&events);
            check(&replies, contestant.expected)?;
            // The first round only warms up.
            if round > 0 {
                let latencies = replies.iter().map(|reply| reply.latency);
                figures.latencies.extend(latencies);
            }
            figures.throttled = function.throttled()?;
        }
    }
    Ok(figures)
}
