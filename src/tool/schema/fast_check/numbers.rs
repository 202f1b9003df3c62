//! Limits of numbers and counts.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::Verdict::{self, Unknown, Valid};

/// Floats represent every integer up to this one.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The limits of a number, of a text's length or of the number of items.
#[derive(Debug, Default)]
pub(super) struct Range {
    least: Option<Bound>,
    most: Option<Bound>,
}

#[derive(Debug)]
struct Bound {
    number: f64,
    is_exclusive: bool,
}

impl Range {
    /// `None` if there is such a limit already, or if a float does not represent the new one.
    pub(super) fn set_least(&mut self, value: &Value, is_exclusive: bool) -> Option<()> {
        set(&mut self.least, value, is_exclusive)
    }

    pub(super) fn set_most(&mut self, value: &Value, is_exclusive: bool) -> Option<()> {
        set(&mut self.most, value, is_exclusive)
    }

    pub(super) fn contains(&self, number: &Number) -> Verdict {
        let allows = |bound: &Option<Bound>, side| match bound {
            Some(bound) => bound.allows(number, side),
            None => Valid,
        };
        allows(&self.least, Ordering::Greater).and(|| allows(&self.most, Ordering::Less))
    }

    /// Counts only if there is a limit.
    pub(super) fn contains_count(&self, count: impl FnOnce() -> usize) -> Verdict {
        if self.least.is_none() && self.most.is_none() {
            return Valid;
        }
        self.contains(&count().into())
    }
}

fn set(bound: &mut Option<Bound>, value: &Value, is_exclusive: bool) -> Option<()> {
    let number = value.as_f64().filter(|it| it.abs() <= LARGEST_EXACT)?;
    let new = Bound {
        number,
        is_exclusive,
    };
    // A limit and an exclusive one apply both.
    bound.replace(new).is_none().then_some(())
}

impl Bound {
    /// Valid for numbers on this side of the bound. Rounding to a float moves no number across
    /// another one, but may make them equal.
    fn allows(&self, number: &Number, side: Ordering) -> Verdict {
        let number = number.as_f64();
        match number.and_then(|number| number.partial_cmp(&self.number)) {
            None => Unknown,
            Some(Ordering::Equal) if self.number.abs() >= LARGEST_EXACT => Unknown,
            Some(Ordering::Equal) => Verdict::of(!self.is_exclusive),
            Some(ordering) => Verdict::of(ordering == side),
        }
    }
}
