//! Records that outlive a call, consistent across all processes that share a store.
//!
//! A [`Store`](store::Store) keeps versioned records, in memory or in DynamoDB. Two layers give them a
//! meaning: [`idempotency`] runs a repeated call once, and [`quotas`] limits how many calls run.
//!
//! `lambda_tools` uses both for the calls of a server, and re-exports their settings.
//!
//! # Cargo features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `dynamodb` | `store::DynamoDb`: records in a DynamoDB table |
//! | `aws` | the module `aws`: the configuration that all AWS clients share |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![expect(
    clippy::must_use_candidate,
    reason = "results that callers of a query cannot overlook"
)]

#[cfg(feature = "aws")]
pub mod aws;
mod error;
pub mod idempotency;
pub mod quotas;
pub mod store;

pub use error::StoreError;

// The crates whose types are part of this crate's interface, and of an AWS client's configuration.
#[cfg(feature = "dynamodb")]
pub use aws_sdk_dynamodb;
#[cfg(feature = "aws")]
pub use {aws_credential_types, aws_smithy_runtime_api, aws_smithy_types, aws_types};

// What a tool is, under short paths.
use lambda_tools_core::{Caller, Failure, Secret, ToolId, clock, text, tool};

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
