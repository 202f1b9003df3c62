//! The figures as JSON.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Comparison, Results};
use crate::{
    measure::Row,
    scaling::Scaling,
    share::{self, Shares},
    spread::Spread,
};

pub(super) fn figures(about: &str, results: &Results) -> Value {
    let mut all = Map::new();
    all.insert("about".into(), about.into());
    let parts = [
        results.comparison.as_ref().map(comparison),
        results.shares.as_ref().map(shares),
        results.scaling.as_ref().map(scaling),
    ];
    all.extend(parts.into_iter().flatten().flatten());
    all.into()
}

type Figures = Vec<(String, Value)>;

fn comparison(comparison: &Comparison) -> Figures {
    let row = |row: &Row| {
        json!({"name": row.name, "cold": times(&row.starts.cold), "first": times(&row.starts.first),
               "cold_and_first": times(&row.starts.total), "warm": times(&row.warm),
               "cpu_per_call": times(&row.cpu_per_call),
               "calls_per_second": row.calls_per_second.round(), "peak_memory": row.peak_memory})
    };
    let files = comparison.files.iter();
    let files =
        files.map(|(name, binary, zip)| json!({"name": name, "binary": binary, "zip": zip}));
    vec![
        ("contest".into(), comparison.rows.iter().map(row).collect()),
        ("files".into(), files.collect()),
    ]
}

fn shares(shares: &Shares) -> Figures {
    let row = |row: &share::Row| {
        json!({"memory_mb": row.megabytes, "name": row.name, "cold": times(&row.starts.cold),
               "first": times(&row.starts.first), "cold_and_first": times(&row.starts.total),
               "warm": times(&row.warm), "throttled_periods": row.throttled})
    };
    let value = match shares {
        Shares::Measured(rows) => rows.iter().map(row).collect(),
        Shares::Unavailable(reason) => json!({"not_measured": reason}),
    };
    vec![("shares".into(), value)]
}

fn scaling(scaling: &Scaling) -> Figures {
    let tools = scaling.tools.iter().map(|tools| {
        json!({"tools": tools.count, "cold": times(&tools.cold), "first_list": times(&tools.first_list),
               "warm_list": times(&tools.warm_list),
               "unchanged_list": tools.unchanged_list.as_ref().map(times),
               "call": times(&tools.call), "list_bytes": tools.list_bytes})
    });
    let inputs = scaling.inputs.iter().map(|input| {
        json!({"bytes": input.bytes, "latency": times(&input.latency),
               "cpu_per_call": times(&input.cpu_per_call), "parsing": times(&input.parsing)})
    });
    let schemas = scaling.schemas.iter().map(|schema| {
        json!({"schema": schema.name, "first": times(&schema.first), "warm": times(&schema.warm)})
    });
    vec![
        ("tools".into(), tools.collect()),
        ("inputs".into(), inputs.collect()),
        ("schemas".into(), schemas.collect()),
    ]
}

fn times(spread: &Spread) -> Value {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    json!({"p10_us": us(spread.p10), "median_us": us(spread.median),
           "p90_us": us(spread.p90), "p99_us": us(spread.p99)})
}
