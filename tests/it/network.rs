//! The requests that calls cost, compared with the table in `docs/operations.md`.

mod calls;
mod cold_starts;
mod grants;

use std::{collections::BTreeMap, time::Duration};

use test_support::{
    aws::{AwsProxy, Emulator},
    documents::table,
    requests::{Recorded, Recorder},
};

const TABLE: &str = "records";

/// The time that a request takes at least.
const SHORT: Duration = Duration::from_millis(100);

/// The number of requests, and of those that wait for each other.
type Cost = (usize, usize);

/// The measured costs, by the cases of the table.
#[derive(Default)]
struct Measured(BTreeMap<String, Cost>);

impl Measured {
    fn add(&mut self, case: &str, recorded: &Recorded) {
        let names = recorded.names();
        println!("{case}: {} waits, {names:?}", recorded.waits());
        let cost = (names.len(), recorded.waits());
        let previous = self.0.insert(case.to_owned(), cost);
        // Some cases are measured in several ways.
        assert!(previous.is_none_or(|it| it == cost), "{case}: {previous:?}");
    }
}

/// The emulator behind a proxy that records requests, with a table.
struct Network {
    emulator: Emulator,
    proxy: AwsProxy,
    recorder: Recorder,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto; run tests/all"]
async fn calls_cost_the_documented_requests() {
    let rows = table("case").into_iter().map(|row| {
        let number = |index: usize| row[index].parse::<usize>().unwrap();
        (row[0].clone(), (number(1), number(2)))
    });
    let documented: BTreeMap<_, _> = rows.collect();
    let (emulator, recorder) = (Emulator::start().await, Recorder::with_delay(SHORT));
    let proxy = emulator.recorded_proxy(&recorder).await;
    proxy.create_table(TABLE).await;
    let network = Network {
        emulator,
        proxy,
        recorder,
    };
    let mut measured = Measured::default();
    cold_starts::measure(&network, &mut measured).await;
    Box::pin(calls::measure(&network, &mut measured)).await;
    grants::measure(&network, &mut measured).await;
    assert_eq!(measured.0, documented);
}
