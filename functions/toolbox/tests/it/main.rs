//! Tests of the function: its tools, its events, its process, and the programs that call it.

mod agentcore;
mod clients;
mod conformance;
mod deployed;
mod documents;
mod explorer;
mod lambda;
mod leaks;
mod local;
mod long;
mod long_calls;
mod observed;
mod openapi;
mod settings;
mod sign_in;
mod streaming;
mod support;
mod template;
mod third_party;
mod troubleshooting;
