//! Searches the interleavings of refreshes of one grant, in processes that share a store, at a
//! provider that revokes the grant if a refresh token is used twice.

mod provider;
mod scenario;
mod tests;

use provider::{ProviderState, with_provider};
use scenario::Refreshes;
