//! Tests of the library's public API and of the bytes on the wire.
//!
//! They run with any features; a test that needs one is compiled only with it.

mod agentcore_list;
mod asking;
mod authentication;
mod authoring;
#[cfg(any(
    feature = "dynamodb",
    feature = "parameter-store",
    feature = "secrets-manager"
))]
mod aws;
#[cfg(all(feature = "parameter-store", feature = "secrets-manager"))]
mod aws_secrets;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "oauth")]
mod consent_page;
mod content;
mod direct;
mod documents;
#[cfg(feature = "explorer")]
mod explorer;
mod features;
mod idempotency;
mod inputs;
mod leaks;
mod misbehaving_function;
#[cfg(all(
    feature = "dynamodb",
    feature = "oauth",
    feature = "oidc",
    feature = "parameter-store",
    feature = "secrets-manager"
))]
mod network;
#[cfg(all(feature = "client", feature = "jwt", feature = "oauth"))]
mod oauth;
#[cfg(feature = "oidc")]
mod oidc;
mod quotas;
mod reading;
mod responses;
mod routes;
mod secret_headers;
#[cfg(feature = "sign-in")]
mod sign_in;
mod support;
#[cfg(feature = "tasks")]
mod tasks;
mod testing;
#[cfg(any(feature = "client", feature = "otlp"))]
mod tools;
#[cfg(feature = "otlp")]
mod traced;
mod validation;
