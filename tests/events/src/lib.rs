//! The servers that the recorded events in `events/` are sent to.

pub mod faults;
mod servers;
mod stub;

pub use servers::{TWILIO_KEY, server_of};
pub use stub::Stub;
