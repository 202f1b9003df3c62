//! Searches the interleavings of repeated calls: of their claims, runs and records, in processes
//! that share a store.

mod ledger;
mod rules;
mod scenario;
mod tests;

use ledger::{Ledger, with_ledger};
use scenario::Calls;
