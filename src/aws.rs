//! Configuration shared by all AWS clients: region, credentials and endpoint from the environment,
//! and one HTTP client.
//!
//! Credentials are read from environment variables only: those that Lambda sets, or those that
//! `aws configure export-credentials --format env` prints. Any other credential provider would mean
//! more code to load on each cold start.

mod connections;
mod roots;

use std::{env, sync::OnceLock, time::Duration};

use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_smithy_runtime_api::client::{behavior_version::BehaviorVersion, result::SdkError};
use aws_smithy_types::{
    error::metadata::ProvideErrorMetadata, retry::RetryConfig, timeout::TimeoutConfig,
};
use aws_types::{SdkConfig, region::Region};

use crate::StoreError;
use connections::Connections;
use roots::Roots;

/// Returns the client in the cell, or creates it. `service` is the suffix of its endpoint variable.
pub(crate) fn client<'a, C>(
    cell: &'a OnceLock<C>,
    service: &str,
    create: fn(&SdkConfig) -> C,
) -> Result<&'a C, StoreError> {
    if let Some(client) = cell.get() {
        return Ok(client);
    }
    let config = config(service)?;
    Ok(cell.get_or_init(|| create(&config)))
}

fn config(service: &str) -> Result<SdkConfig, StoreError> {
    let optional = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let required = |name: &str| {
        let missing = || format!("the environment variable {name} is not set");
        optional(name).ok_or_else(|| StoreError::denied(missing()))
    };
    let region = optional("AWS_REGION").or_else(|| optional("AWS_DEFAULT_REGION"));
    let region = region.map_or_else(|| required("AWS_REGION"), Ok)?;
    let credentials = Credentials::new(
        required("AWS_ACCESS_KEY_ID")?,
        required("AWS_SECRET_ACCESS_KEY")?,
        optional("AWS_SESSION_TOKEN"),
        None,
        "environment",
    );
    let endpoint = optional(&format!("AWS_ENDPOINT_URL_{service}"));
    let endpoint = endpoint.or_else(|| optional("AWS_ENDPOINT_URL"));
    let is_set = |name: &str| env::var_os(name).is_some();
    let roots = Roots::new(&region, endpoint.as_deref(), is_set);
    // Two attempts fit within a store's time limit.
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(1))
        .operation_attempt_timeout(Duration::from_millis(1400))
        .build();
    let retries = RetryConfig::standard()
        .with_max_attempts(2)
        .with_initial_backoff(Duration::from_millis(50))
        .with_max_backoff(Duration::from_millis(200));
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(region))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .retry_config(retries)
        .timeout_config(timeouts)
        .http_client(Connections(roots));
    config.set_endpoint_url(endpoint);
    Ok(config.build())
}

/// Returns the store error for a failed request. `specific` maps the error codes that only this
/// service uses.
pub(crate) fn error_of<E: ProvideErrorMetadata, R>(
    service: &str,
    error: &SdkError<E, R>,
    specific: impl FnOnce(&str, &str) -> Option<StoreError>,
) -> StoreError {
    match error {
        SdkError::TimeoutError(_) => StoreError::unavailable(format!("{service} does not respond")),
        SdkError::DispatchFailure(_) => {
            StoreError::unavailable(format!("{service} cannot be reached"))
        }
        SdkError::ConstructionFailure(_) => StoreError::denied(format!(
            "no request to {service} can be built; check AWS_REGION and AWS_ENDPOINT_URL"
        )),
        SdkError::ServiceError(error) => {
            let code = error.err().code().unwrap_or_default();
            let message = error.err().message().unwrap_or_default();
            specific(code, message).unwrap_or_else(|| error_of_code(service, code))
        }
        _ => StoreError::unavailable(format!("{service} returned a response that cannot be read")),
    }
}

/// Returns the store error for an error code that all services use.
pub(crate) fn error_of_code(service: &str, code: &str) -> StoreError {
    match code {
        "UnrecognizedClientException"
        | "ExpiredTokenException"
        | "InvalidSignatureException"
        | "IncompleteSignature"
        | "InvalidClientTokenId"
        | "MissingAuthenticationToken" => {
            StoreError::denied(format!("AWS does not accept the credentials ({code})"))
        }
        "ThrottlingException"
        | "Throttling"
        | "TooManyRequestsException"
        | "RequestLimitExceeded"
        | "ProvisionedThroughputExceededException" => {
            StoreError::throttled(format!("{service} receives too many requests"))
        }
        "" => StoreError::unavailable(format!("{service} failed")),
        code => StoreError::unavailable(format!("{service} failed ({code})")),
    }
}
