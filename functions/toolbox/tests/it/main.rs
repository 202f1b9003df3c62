//! Tests of the function: its tools, its events, its process, and the programs that call it.

mod clients;
mod conformance;
mod events;
mod lambda;
mod process;
mod servers;
mod stub;
mod support;
mod third_party;
