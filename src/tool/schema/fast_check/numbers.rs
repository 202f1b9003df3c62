//! Limits of numbers and counts.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::Verdict::{self, Unknown, Valid};

/// The limits of a number, of a text's length or of the number of items.
#[derive(Debug, Default)]
pub(super) struct Range {
    least: Option<Bound>,
    most: Option<Bound>,
}

#[derive(Debug)]
struct Bound {
    number: Number,
    is_exclusive: bool,
}

impl Range {
    /// `None` if there is such a limit already, or if the new one is not a number.
    pub(super) fn set_least(&mut self, value: &Value, is_exclusive: bool) -> Option<()> {
        set(&mut self.least, value, is_exclusive)
    }

    pub(super) fn set_most(&mut self, value: &Value, is_exclusive: bool) -> Option<()> {
        set(&mut self.most, value, is_exclusive)
    }

    /// `None` if the limit is not a natural number.
    pub(super) fn set_least_count(&mut self, value: &Value) -> Option<()> {
        value.as_u64()?;
        self.set_least(value, false)
    }

    pub(super) fn set_most_count(&mut self, value: &Value) -> Option<()> {
        value.as_u64()?;
        self.set_most(value, false)
    }

    pub(super) fn contains(&self, number: &Number) -> Verdict {
        let least = self
            .least
            .as_ref()
            .map_or(Valid, |bound| bound.allows(number, Ordering::Greater));
        least.and(|| {
            let most = self.most.as_ref();
            most.map_or(Valid, |bound| bound.allows(number, Ordering::Less))
        })
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
    let Value::Number(number) = value else {
        return None;
    };
    let new = Bound {
        number: number.clone(),
        is_exclusive,
    };
    // A limit and an exclusive one apply both.
    bound.replace(new).is_none().then_some(())
}

impl Bound {
    /// True for numbers on this side of the bound.
    fn allows(&self, number: &Number, side: Ordering) -> Verdict {
        match compare(number, &self.number) {
            None => Unknown,
            Some(Ordering::Equal) => Verdict::of(!self.is_exclusive),
            Some(ordering) => Verdict::of(ordering == side),
        }
    }
}

/// `None` if the numbers cannot be compared exactly in one type.
fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
        return Some(one.cmp(&other));
    }
    if let (Some(one), Some(other)) = (one.as_u64(), other.as_u64()) {
        return Some(one.cmp(&other));
    }
    exact_float(one)?.partial_cmp(&exact_float(other)?)
}

/// The number as a float, if that does not change it.
fn exact_float(number: &Number) -> Option<f64> {
    const LARGEST_EXACT: u64 = 1 << 53;
    let is_exact = match number.as_i64() {
        Some(integer) => integer.unsigned_abs() <= LARGEST_EXACT,
        None => number.is_f64(),
    };
    number.as_f64().filter(|_| is_exact)
}
