//! What can be seen of a function from outside: its log, its metrics, its traces.
//!
//! Secrets, inputs and outputs are in none of them.

pub(crate) mod confidential;
#[cfg(test)]
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod otlp;
pub(crate) mod panics;
pub(crate) mod request_log;
pub(crate) mod spans;
pub(crate) mod trace;
pub(crate) mod trail;
