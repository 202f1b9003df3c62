//! Tests of the library from outside: what its users write, and what goes over the wire.
//!
//! They run with any features; what needs one is compiled with it.

mod answers;
mod any_input;
mod authentication;
mod authoring;
#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "otlp")]
mod collector;
mod idempotency;
mod leaks;
mod local;
#[cfg(feature = "managed-instances")]
mod managed;
mod night;
#[cfg(all(feature = "client", feature = "jwt", feature = "oauth"))]
mod oauth;
mod profile;
#[cfg(feature = "oauth")]
mod question;
#[cfg(feature = "secrets-manager")]
mod secrets_manager;
#[cfg(feature = "dynamodb")]
mod stress;
mod support;
#[cfg(any(feature = "client", feature = "otlp"))]
mod tools;
#[cfg(feature = "otlp")]
mod traced;
mod validation;
