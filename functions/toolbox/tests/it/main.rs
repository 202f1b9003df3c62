//! Tests of the function: its tools, its events, its process, and the programs that call it.

mod authorization;
mod aws;
mod choices;
mod client;
mod clients;
mod collector;
mod conformance;
mod deployed;
mod events;
mod idempotency;
mod lambda;
mod leaks;
mod local;
mod managed;
mod night;
mod observed;
mod process;
mod protocols;
mod secrets_manager;
mod servers;
mod stress;
mod stub;
mod support;
mod template;
mod third_party;
mod traced;
