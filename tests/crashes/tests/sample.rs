//! A sample of runs, whose seeds differ each time.

use std::{
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use crashes::{campaign::Campaign, plan::STEPS};

#[test]
fn a_call_has_one_effect_wherever_its_process_dies() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let campaign = Campaign {
        function: PathBuf::from(env!("CARGO_BIN_EXE_crashes_function")),
        seed: now.as_secs() * 1000,
        runs: 200,
        threads: 1,
        concurrency: 40,
    };
    println!("the first seed is {}", campaign.seed);
    let summary = campaign.run();
    println!("{summary}");
    assert!(summary.broken.is_empty(), "see the histories above");
    // So many runs reach every step, and let processes and requests be overtaken.
    let killed = STEPS.map(|step| format!("killed: {step:?}"));
    let late = ["frozen", "store: Record Overtaken"];
    for kind in killed.iter().map(|kind| &**kind).chain(late) {
        assert!(summary.count_of(kind) > 0, "{kind}");
    }
}
