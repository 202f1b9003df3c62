//! A target: a measured value and the most (or least) it should be.

use std::fmt::{self, Write as _};

pub(super) struct Target {
    pub(super) what: &'static str,
    pub(super) measured: String,
    pub(super) target: String,
    pub(super) outcome: Outcome,
    /// True if a miss fails the run. False where the result depends mainly on the machine, and
    /// where `benches/README.md` explains a known miss.
    pub(super) is_limit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Met,
    Missed,
    /// The machine, or the function, lacks what the measurement needs.
    NotMeasured,
}

impl Outcome {
    pub(super) fn of(is_met: bool) -> Self {
        if is_met { Self::Met } else { Self::Missed }
    }
}

impl Target {
    pub(super) fn at_most(what: &'static str, measured: f64, limit: f64, unit: &str) -> Self {
        Self::new(what, measured, '≤', limit, unit, measured <= limit)
    }

    pub(super) fn at_least(what: &'static str, measured: f64, limit: f64, unit: &str) -> Self {
        Self::new(what, measured, '≥', limit, unit, measured >= limit)
    }

    /// At most a limit, if there is a measurement.
    pub(super) fn at_most_if_measured(
        what: &'static str,
        measured: Option<f64>,
        limit: f64,
        unit: &str,
    ) -> Self {
        let target = Self::at_most(what, measured.unwrap_or(f64::NAN), limit, unit);
        if measured.is_some() {
            return target;
        }
        Self {
            measured: "not measured".into(),
            outcome: Outcome::NotMeasured,
            ..target
        }
    }

    fn new(
        what: &'static str,
        measured: f64,
        sign: char,
        limit: f64,
        unit: &str,
        is_met: bool,
    ) -> Self {
        Self {
            what,
            measured: format!("{measured:.2}{unit}"),
            target: format!("{sign} {limit}{unit}"),
            outcome: Outcome::of(is_met),
            is_limit: true,
        }
    }

    pub(super) fn only_shown(self) -> Self {
        Self {
            is_limit: false,
            ..self
        }
    }
}

pub(super) fn table(text: &mut String, targets: &[Target]) -> fmt::Result {
    *text += "## Targets\n\nA limit that is missed or not measured fails the run; \
              [README.md](README.md) explains other missed targets.\n\n\
              | | measured | target | | limit |\n| --- | --- | --- | --- | --- |\n";
    for it in targets {
        let outcome = match it.outcome {
            Outcome::Met => "met",
            Outcome::Missed => "**missed**",
            Outcome::NotMeasured => "**not measured**",
        };
        let limit = if it.is_limit { "yes" } else { "no" };
        writeln!(
            text,
            "| {} | {} | {} | {outcome} | {limit} |",
            it.what, it.measured, it.target
        )?;
    }
    Ok(())
}

/// The error that names the limits that are not met, if there are any.
pub(super) fn failures(targets: &[Target]) -> Option<String> {
    let named = |outcome, text| {
        let targets = targets.iter();
        let failed = targets.filter(|target| target.is_limit && target.outcome == outcome);
        let names: Vec<_> = failed.map(|target| target.what).collect();
        (!names.is_empty()).then(|| format!("{text}: {}", names.join("; ")))
    };
    let exceeded = named(Outcome::Missed, "Limits missed");
    let unmeasured = named(Outcome::NotMeasured, "Limits not measured");
    let all: Vec<_> = exceeded.into_iter().chain(unmeasured).collect();
    (!all.is_empty()).then(|| all.join(". "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_met_limit_passes() {
        let measured = |value| vec![Target::at_most_if_measured("start", value, 2.0, " ms")];
        assert_eq!(failures(&measured(Some(2.0))), None);
        assert_eq!(
            failures(&measured(Some(2.1))).unwrap(),
            "Limits missed: start"
        );
        assert_eq!(
            failures(&measured(None)).unwrap(),
            "Limits not measured: start"
        );
        let least = Target::at_least("rate", 1.6, 1.7, " ×");
        assert_eq!(least.outcome, Outcome::Missed);
        assert_eq!(failures(&[least.only_shown()]), None);
    }
}
