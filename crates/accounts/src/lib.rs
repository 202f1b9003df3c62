//! Callers and users of tools: who may call, for whom, and with which secrets.
//!
//! [`auth`] checks the credentials of callers, and lets users sign in. [`oauth`] keeps the grants with
//! which tools act for users at other services. [`secrets`] reads the values that both need, and
//! those of tools.
//!
//! `lambda_tools` uses them for the requests to a server, and re-exports their settings.
//!
//! # Cargo features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `dynamodb` | `OAuth::in_dynamodb`: grants in a DynamoDB table |
//! | `jwt` | `Jwt`: JWTs as credentials |
//! | `oauth` | `OAuth`: users' grants |
//! | `oidc` | `Oidc`: access tokens of identity providers as credentials; includes `jwt` |
//! | `parameter-store` | `secrets::ParameterStore` |
//! | `secrets-manager` | `secrets::SecretsManager` |
//! | `sign-in` | `SignIn`: sign-in for clients that no provider knows; includes `oauth` and `oidc` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![expect(
    clippy::must_use_candidate,
    reason = "results that callers of a query cannot overlook"
)]

pub mod auth;
mod challenge;
#[cfg(any(feature = "oauth", feature = "oidc"))]
mod http_client;
#[cfg(feature = "oauth")]
pub mod oauth;
#[cfg(feature = "oauth")]
pub mod pages;
mod public_url;
pub mod secrets;

#[cfg(feature = "jwt")]
pub use auth::Jwt;
#[cfg(feature = "oidc")]
pub use auth::oidc::Oidc;
#[cfg(feature = "sign-in")]
pub use auth::sign_in::SignIn;
pub use auth::{ApiKeys, Auth, Gateway};
pub use challenge::Challenge;
#[cfg(any(feature = "oauth", feature = "oidc"))]
pub use http_client::is_base_url;
#[cfg(feature = "oauth")]
pub use oauth::OAuth;
pub use public_url::PublicUrl;

// The crates whose types are part of this crate's interface.
#[cfg(feature = "secrets-manager")]
pub use aws_sdk_secretsmanager;
#[cfg(feature = "parameter-store")]
pub use aws_sdk_ssm;

// What the crates below have, under short paths.
#[cfg(feature = "oidc")]
use lambda_tools_core::AccessToken;
#[cfg(feature = "oauth")]
use lambda_tools_core::AuthorizationRequirement;
use lambda_tools_core::{Caller, Secret, Toolkit, clock, secret, text, tool, wire};
#[cfg(any(feature = "parameter-store", feature = "secrets-manager"))]
use lambda_tools_records::aws;
use lambda_tools_records::{StoreError, store};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
