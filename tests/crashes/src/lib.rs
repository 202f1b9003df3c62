//! Kills a function at every step of a call, and checks that the call has one effect.
//!
//! Every step of a call can be seen from outside of its process: the event, the requests to the
//! store, the request for the effect, and the response all reach servers of this program. So the
//! function needs no code for these tests, and is killed exactly between two steps. Each run has a
//! plan, made from a seed, and a history, which the rules of [`checker`] are applied to.

#![allow(clippy::missing_panics_doc, reason = "tests fail by panicking")]

mod answer;
pub mod campaign;
pub mod checker;
pub mod history;
mod instance;
pub mod plan;
pub mod run;
mod store;
pub mod summary;
