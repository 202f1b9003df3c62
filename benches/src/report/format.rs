//! Times and sizes as text.

use std::time::Duration;

use crate::spread::Spread;

pub(super) fn spread(spread: &Spread) -> String {
    format!(
        "{} ({}–{})",
        time(spread.median),
        time(spread.p10),
        time(spread.p90)
    )
}

pub(super) fn time(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 1000.0 {
        format!("{us:.0} µs")
    } else {
        format!("{:.2} ms", us / 1000.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of files and memories")]
pub(super) fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", mega(bytes))
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(super) fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
