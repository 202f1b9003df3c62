//! Configuration shared by all AWS clients: region, credentials and endpoint from the environment,
//! and one HTTP client.
//!
//! Credentials are read from environment variables only: those that Lambda sets, or those that
//! `aws configure export-credentials --format env` prints. Any other credential provider would mean
//! more code to load on each cold start.

use std::{env, sync::OnceLock, time::Duration};

use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        behavior_version::BehaviorVersion,
        http::{
            HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings as Settings,
            SharedHttpConnector,
        },
        orchestrator::{HttpRequest, HttpResponse},
        result::{ConnectorError, SdkError},
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::{
    body::SdkBody, error::metadata::ProvideErrorMetadata, retry::RetryConfig,
    timeout::TimeoutConfig,
};
use aws_types::{SdkConfig, region::Region};
use reqwest::{Body, Certificate, Client, redirect::Policy};

use crate::StoreError;

/// Returns the client in the cell, or creates it. `service` is the suffix of its endpoint variable.
pub fn client<'a, C>(
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
pub fn error_of<E: ProvideErrorMetadata, R>(
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
pub fn error_of_code(service: &str, code: &str) -> StoreError {
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

/// The connections, which all services share: most of the time spent creating them goes to
/// decoding certificates. `reqwest` makes them, as those to other servers: AWS's own client would
/// bring a second pool of connections, and HTTP/2.
#[derive(Clone, Debug)]
struct Connections(Roots);

impl HttpClient for Connections {
    fn http_connector(&self, _: &Settings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connections {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let roots = self.0;
        HttpConnectorFuture::new(async move {
            let client = client_for(roots).map_err(connector_error)?;
            let request = request.try_into_http1x().map_err(other_error)?;
            let request = request.map(Body::wrap).try_into().map_err(other_error)?;
            let response = client.execute(request).await.map_err(connector_error)?;
            let response = http::Response::from(response).map(SdkBody::from_body_1_x);
            HttpResponse::try_from(response).map_err(other_error)
        })
    }
}

fn other_error(error: impl Into<BoxError>) -> ConnectorError {
    ConnectorError::other(error.into(), None)
}

/// Returns the error of a connection, which the client tries again.
fn connector_error(error: reqwest::Error) -> ConnectorError {
    if error.is_timeout() {
        ConnectorError::timeout(error.into())
    } else {
        ConnectorError::io(error.into())
    }
}

/// Returns the shared connections. The first request opens one, and decodes the certificates.
fn client_for(roots: Roots) -> reqwest::Result<Client> {
    /// One for each value of `Roots`.
    static CLIENTS: [OnceLock<Client>; 2] = [const { OnceLock::new() }; 2];
    if let Some(client) = CLIENTS[roots as usize].get() {
        return Ok(client.clone());
    }
    let mut client = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .connect_timeout(Duration::from_secs(1));
    if roots == Roots::Amazon {
        client = client.tls_certs_only(Certificate::from_pem_bundle(AMAZON)?);
    }
    let client = client.build()?;
    Ok(CLIENTS[roots as usize].get_or_init(|| client).clone())
}

/// Amazon Root CA 1 to 4 and the Starfield Services Root Certificate Authority - G2, from Debian's
/// copy of Mozilla's list; <https://www.amazontrust.com/repository/> has them as well. The last one
/// expires first, at the end of 2037; Amazon Root CA 1 expires on 2038-01-17, the others on
/// 2040-05-26.
const AMAZON: &[u8] = include_bytes!("aws/amazon_roots.pem");

/// The prefixes of regions outside of the partitions `aws` and `aws-us-gov`: their endpoints may
/// use other certificate authorities.
const OTHER_PARTITIONS: [&str; 4] = ["cn-", "eu-iso", "eusc-", "us-iso"];

/// Variables that name certificates.
const CERTIFICATE_VARIABLES: [&str; 3] = ["AWS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"];

/// The root certificates of a client. Decoding the machine's takes longer than the rest of a cold start,
/// and Amazon's endpoints need five of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roots {
    /// Those of Amazon's endpoints.
    Amazon,
    /// Those of the machine, or of the files in the environment.
    Machine,
}

impl Roots {
    /// Returns the roots for an endpoint; without one, it is Amazon's. `is_set` looks a variable
    /// up.
    fn new(region: &str, endpoint: Option<&str>, is_set: impl Fn(&str) -> bool + Copy) -> Self {
        let is_public = !OTHER_PARTITIONS.iter().any(|it| region.starts_with(it));
        let is_default = endpoint.is_none() && !CERTIFICATE_VARIABLES.into_iter().any(is_set);
        if is_set("AWS_LAMBDA_RUNTIME_API") && is_default && is_public {
            Self::Amazon
        } else {
            Self::Machine
        }
    }
}

#[cfg(test)]
mod tests;
