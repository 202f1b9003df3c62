//! The oracles of the fuzz targets, and what all targets share.

pub mod agentcore;
mod allocator;
pub mod body;
pub mod call;
mod clients;
pub mod document;
mod echo;
mod encodings;
pub mod event;
pub mod jwt;
pub mod mutation;
pub mod oauth_callback;
pub mod recording;
pub mod redaction;
pub mod reply;
mod responses;
mod round_trip;
mod runtime;
pub mod schema;
mod server;
mod store;
pub mod typed;

use std::panic;

use serde_json::Value;

pub use allocator::{MemoryBound, bounded};

/// The start of the message of every panic that a tool of the targets raises on purpose.
const PLANTED_PANIC: &str = "planted panic";

/// Prepares a target: any panic ends the process, even if the library would catch it, except for
/// those that tools raise on purpose.
pub fn begin() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        if !text.starts_with(PLANTED_PANIC) {
            abort(panic);
        }
    }));
}

/// Returns the number of levels of arrays and objects.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
