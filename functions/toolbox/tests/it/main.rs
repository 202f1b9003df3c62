//! Tests of the function: its tools, its events, its process, and the programs that call it.

mod artifacts;
mod claude_code;
mod clients;
mod conformance;
mod deployed;
mod documents;
mod events;
mod explorer;
mod lambda;
mod leaks;
mod licenses;
mod local;
mod mcp_clients;
mod models;
mod observed;
mod openapi;
mod process;
mod secrets;
mod servers;
mod settings;
mod sign_in;
mod stub;
mod support;
mod template;
mod third_party;
mod users;
