//! The targets relative to bare `lambda_http` as its users run it, to the handwritten tool, and to
//! Python.

use super::{
    Comparison,
    format::{mega, milliseconds, ratio},
    target::{Outcome, Target},
};
use crate::{contestants::Id, measure::Row, scaling::Scaling};

pub(super) fn of_comparison(comparison: &Comparison) -> Vec<Target> {
    let [bare, ours, handwritten] =
        [Id::Bare, Id::Oxp, Id::Handwritten].map(|id| comparison.row(id));
    let [modern, legacy] = [Id::McpModern, Id::McpLegacy].map(|id| comparison.row(id));
    let [with_key, with_token] = [Id::ApiKey, Id::AccessToken].map(|id| comparison.row(id));
    let start = milliseconds(ours.starts.cold.median) - milliseconds(bare.starts.cold.median);
    let first = ours.starts.first.median;
    let beside_handwritten = ratio(first, handwritten.starts.first.median);
    let slower_mcp = modern.warm.median.max(legacy.warm.median);
    let token = milliseconds(with_token.warm.median) - milliseconds(with_key.warm.median);
    let memory = mega(ours.peak_memory) - mega(bare.peak_memory);
    let mut targets = vec![
        Target::at_most("cold start over bare", start, 1.0, " ms"),
        Target::at_most("first call", milliseconds(first), 1.0, " ms").only_shown(),
        Target::at_most(
            "first call, relative to handwritten",
            beside_handwritten,
            1.2,
            " ×",
        ),
        Target::at_most(
            "warm call p50, relative to bare",
            ratio(ours.warm.median, bare.warm.median),
            1.15,
            " ×",
        ),
        Target::at_most(
            "warm MCP call p50, relative to OXP",
            ratio(slower_mcp, ours.warm.median),
            1.1,
            " ×",
        ),
        Target::at_most(
            "warm call p50 with an access token, over one with an API key",
            token,
            0.15,
            " ms",
        ),
        Target::at_most(
            "CPU per call, relative to bare",
            ratio(ours.cpu_per_call.median, bare.cpu_per_call.median),
            1.25,
            " ×",
        ),
        Target::at_most("peak RSS over bare", memory, 6.0, " MB").only_shown(),
        // 4.5 MB for the AWS clients, plus OAuth.
        Target::at_most("zip of the toolbox", comparison.zip("toolbox"), 4.7, " MB"),
        Target::at_most(
            "zip without AWS clients (hello)",
            comparison.zip("hello"),
            2.5,
            " MB",
        ),
    ];
    targets.extend(beside_python(comparison));
    targets
}

/// These ratios depend mainly on the share of the machine's network in a call, which is the same
/// for all contestants; bare's figure shows that share.
fn beside_python(comparison: &Comparison) -> [Target; 4] {
    let [bare, ours, legacy] = [Id::Bare, Id::Oxp, Id::McpLegacy].map(|id| comparison.row(id));
    let [handler, fastapi] = [Id::McpHandler, Id::FastApi].map(|id| comparison.row(id));
    let target = |what, measured: f64, bare: f64, target: String, is_met| Target {
        what,
        measured: format!("{measured:.3} × (bare: {bare:.3} ×)"),
        target,
        outcome: Outcome::of(is_met),
        is_limit: false,
    };
    let at_most = |what, of: &dyn Fn(&Row) -> f64, limit: f64| {
        let target_text = format!("≤ {limit} ×");
        target(what, of(ours), of(bare), target_text, of(ours) <= limit)
    };
    let rates = |what, ours: &Row, theirs: &Row, limit: f64| {
        let of = |row: &Row| row.calls_per_second / theirs.calls_per_second;
        let target_text = format!("≥ {limit} ×");
        target(what, of(ours), of(bare), target_text, of(ours) >= limit)
    };
    let cold = |row: &Row| row.starts.cold.median;
    let faster_start = cold(handler).min(cold(fastapi));
    let cpu = |row: &Row| row.cpu_per_call.median;
    let cheaper = cpu(handler).min(cpu(fastapi));
    [
        at_most(
            "cold start, relative to the faster Python contestant",
            &|row| ratio(cold(row), faster_start),
            0.01,
        ),
        at_most(
            "CPU per call, relative to the cheaper Python contestant",
            &|row| ratio(cpu(row), cheaper),
            0.25,
        ),
        rates(
            "calls/s over MCP 2025-11-25, relative to the MCP handler",
            legacy,
            handler,
            1.8,
        ),
        rates("calls/s, relative to FastAPI", ours, fastapi, 2.3),
    ]
}

pub(super) fn of_scaling(scaling: &Scaling) -> [Target; 2] {
    let large = scaling.large_input();
    let parsing = ratio(large.cpu_per_call.median, large.parsing.median);
    let many = scaling.cold_start_of_many();
    [
        Target::at_most("cold start, 10,000 tools over 1", many, 3.0, " ms").only_shown(),
        Target::at_most(
            "5 MB input, CPU relative to parsing once",
            parsing,
            2.0,
            " ×",
        )
        .only_shown(),
    ]
}
