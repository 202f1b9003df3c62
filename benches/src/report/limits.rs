//! The limits relative to bare `lambda_http` on one thread, to `rmcp`, and to the least work.
//!
//! They are stricter than the other targets: bare `lambda_http` needs less on one thread, and
//! `rmcp` does the same work for the same event.

use super::{
    Comparison,
    format::{mega, milliseconds, ratio},
    target::Target,
};
use crate::{
    contestants::Id,
    scaling::Scaling,
    share::{Row, Shares},
    spread::StartSpreads,
};

pub(super) fn of_comparison(comparison: &Comparison) -> Vec<Target> {
    let [bare, ours] = [Id::BareCurrentThread, Id::Oxp].map(|id| comparison.row(id));
    let [rmcp, over_mcp] = [Id::Rmcp, Id::McpLegacy].map(|id| comparison.row(id));
    let warm = ratio(ours.warm.median, bare.warm.median);
    let rate = ours.calls_per_second / bare.calls_per_second;
    let rate_over_mcp = over_mcp.calls_per_second / rmcp.calls_per_second;
    let cpu = ratio(ours.cpu_per_call.median, bare.cpu_per_call.median);
    let memory = mega(ours.peak_memory) - mega(bare.peak_memory);
    vec![
        Target::at_most(
            "warm call p50, relative to bare on one thread",
            warm,
            1.3,
            " ×",
        ),
        Target::at_least("calls/s, relative to bare on one thread", rate, 0.8, " ×"),
        Target::at_least(
            "calls/s over MCP, relative to rmcp",
            rate_over_mcp,
            1.7,
            " ×",
        ),
        Target::at_most(
            "CPU per call, relative to bare on one thread",
            cpu,
            1.3,
            " ×",
        ),
        Target::at_most(
            "cold start and first call, over bare on one thread",
            over(&ours.starts, &bare.starts),
            1.0,
            " ms",
        ),
        Target::at_most(
            "cold start and first call over MCP, over rmcp",
            over(&over_mcp.starts, &rmcp.starts),
            0.0,
            " ms",
        ),
        Target::at_most("peak RSS over bare on one thread", memory, 5.0, " MB"),
        Target::at_most("zip of the toolbox", comparison.zip("toolbox"), 4.5, " MB"),
    ]
}

pub(super) fn of_shares(shares: &Shares) -> [Target; 2] {
    let starts = |id| match shares {
        Shares::Measured(rows) => starts_at_128_mb(rows, id),
        Shares::Unavailable(_) => None,
    };
    let difference = |ours, theirs| Some(over(starts(ours)?, starts(theirs)?));
    [
        Target::at_most_if_measured(
            "cold start and first call with 128 MB, over bare on one thread",
            difference(Id::Oxp, Id::BareCurrentThread),
            3.0,
            " ms",
        ),
        Target::at_most_if_measured(
            "cold start and first call over MCP with 128 MB, over rmcp",
            difference(Id::McpLegacy, Id::Rmcp),
            0.0,
            " ms",
        ),
    ]
}

fn starts_at_128_mb(rows: &[Row], id: Id) -> Option<&StartSpreads> {
    let row = rows.iter().find(|row| row.megabytes == 128 && row.id == id);
    row.map(|row| &row.starts)
}

/// The difference of the medians, in milliseconds.
fn over(ours: &StartSpreads, theirs: &StartSpreads) -> f64 {
    milliseconds(ours.total.median) - milliseconds(theirs.total.median)
}

pub(super) fn of_scaling(scaling: &Scaling) -> [Target; 5] {
    let many = scaling.most_tools();
    let unchanged = many.unchanged_list.as_ref();
    let large = scaling.large_input();
    let parsing = ratio(large.cpu_per_call.median, large.parsing.median);
    [
        Target::at_most(
            "cold start, 10,000 tools over 1",
            scaling.cold_start_of_many(),
            2.0,
            " ms",
        ),
        Target::at_most(
            "first `/tools` of 10,000",
            milliseconds(many.first_list.median),
            60.0,
            " ms",
        ),
        Target::at_most(
            "later `/tools` of 10,000",
            milliseconds(many.warm_list.median),
            1.0,
            " ms",
        ),
        Target::at_most_if_measured(
            "unchanged `/tools` of 10,000",
            unchanged.map(|times| milliseconds(times.median)),
            0.2,
            " ms",
        ),
        Target::at_most(
            "5 MB input, CPU relative to parsing once",
            parsing,
            1.3,
            " ×",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::target::failures, *};

    #[test]
    fn without_a_quota_the_limits_are_not_met() {
        let targets = of_shares(&Shares::Unavailable("no control groups".into()));
        let text = failures(&targets).unwrap();
        assert!(
            text.starts_with("Limits not measured: cold start"),
            "{text}"
        );
        assert!(targets.iter().all(|target| target.is_limit));
    }
}
