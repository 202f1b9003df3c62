//! The oracles of the fuzz targets, and what all targets share.

mod allocator;
pub mod document;
mod encodings;
pub mod event;
pub mod jwt;
pub mod mutation;
mod responses;
pub mod schema;
mod server;

use std::panic;

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
