//! Observability: the log, metrics and traces.
//!
//! None of them contains secrets. Inputs and outputs are logged by the local server only.

pub(crate) mod confidential;
pub(crate) mod log;
pub(crate) mod metrics;
#[cfg_attr(not(feature = "otlp"), path = "observe/otlp/off.rs")]
pub(crate) mod otlp;
pub(crate) mod request_log;
pub(crate) mod spans;
#[cfg(test)]
mod tests;
pub(crate) mod trail;
