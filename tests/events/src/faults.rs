//! Tools that fail, and a store that cannot be reached.
//!
//! Each shows how a protocol represents one kind of error.

use std::future::ready;

use lambda_tools::{
    Failure, StoreError, Tool, http,
    store::{PutOutcome, Record, Store, StoreFuture, Write},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// Fails.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Cannot be decoded.
#[derive(JsonSchema)]
struct Undecodable {}

impl<'de> Deserialize<'de> for Undecodable {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("decoding panics on purpose")
    }
}

/// Calls an API, which rejects the request.
#[derive(Deserialize, JsonSchema)]
struct CallApi {
    /// The status of the API's response.
    status: u16,
}

/// More bytes than a Lambda response can have.
const TOO_LARGE: usize = 7_000_000;

/// Returns the tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new("Faults.CallApi@1.0.0", call_api),
        Tool::new("Faults.Large@1.0.0", async |_: Nothing| {
            Ok::<_, Failure>("x".repeat(TOO_LARGE))
        }),
        Tool::new("Faults.Misdefined@1.0.0", async |_: Undecodable| {
            Ok::<_, Failure>(())
        }),
        Tool::new("Faults.Panic@1.0.0", panics),
        Tool::new("Faults.Refuse@1.0.0", refuse),
        Tool::new("Faults.Retry@1.0.0", retry),
    ]
}

async fn call_api(input: CallApi) -> Result<(), Failure> {
    // RFC 9457, 3.
    let problem =
        r#"{"type": "about:blank", "title": "Not valid", "detail": "There is no article 7"}"#;
    let response = http::Response::builder().status(input.status);
    let response = response.body(problem.to_owned())?;
    Err(Failure::from_response(response).await)
}

async fn panics(_: Nothing) -> Result<(), Failure> {
    panic!("the tool panics on purpose")
}

async fn refuse(_: Nothing) -> Result<(), Failure> {
    Err(Failure::new("The tool refuses").developer_message("For the log only."))
}

async fn retry(_: Nothing) -> Result<(), Failure> {
    Err(Failure::new("The tool is busy").retry())
}

/// A store that cannot be reached.
pub(crate) struct UnreachableStore;

fn unreachable<T>() -> Result<T, StoreError> {
    Err(StoreError::unavailable("it cannot be reached"))
}

impl Store for UnreachableStore {
    fn get<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Option<Record>> {
        Box::pin(ready(unreachable()))
    }

    fn put<'a>(&'a self, _: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        Box::pin(ready(unreachable()))
    }

    fn delete<'a>(&'a self, _: &'a str, _: u64) -> StoreFuture<'a, ()> {
        Box::pin(ready(unreachable()))
    }
}
