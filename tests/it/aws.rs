//! AWS clients for the emulator's proxy.

use std::time::Duration;

#[cfg(feature = "secrets-manager")]
use lambda_tools_accounts::aws_sdk_secretsmanager;
#[cfg(feature = "parameter-store")]
use lambda_tools_accounts::aws_sdk_ssm;
#[cfg(feature = "dynamodb")]
use lambda_tools_records::aws_sdk_dynamodb;
use lambda_tools_records::{
    aws_credential_types::{Credentials, provider::SharedCredentialsProvider},
    aws_smithy_runtime_api::client::behavior_version::BehaviorVersion,
    aws_smithy_types::retry::RetryConfig,
    aws_types::{SdkConfig, region::Region},
};
use test_support::aws::AwsProxy;

fn config(url: &str) -> SdkConfig {
    let credentials = Credentials::new("test", "test", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(url)
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .build()
}

#[cfg(feature = "dynamodb")]
pub(crate) fn dynamodb(proxy: &AwsProxy) -> aws_sdk_dynamodb::Client {
    dynamodb_at(&proxy.url())
}

#[cfg(feature = "dynamodb")]
pub(crate) fn dynamodb_at(url: &str) -> aws_sdk_dynamodb::Client {
    aws_sdk_dynamodb::Client::new(&config(url))
}

/// Returns the configuration of a client that reports an error at once.
#[cfg(any(feature = "parameter-store", feature = "secrets-manager"))]
fn without_retries(proxy: &AwsProxy) -> SdkConfig {
    let builder = config(&proxy.url()).into_builder();
    builder.retry_config(RetryConfig::disabled()).build()
}

#[cfg(feature = "parameter-store")]
pub(crate) fn parameter_store(proxy: &AwsProxy) -> aws_sdk_ssm::Client {
    aws_sdk_ssm::Client::new(&without_retries(proxy))
}

#[cfg(feature = "secrets-manager")]
pub(crate) fn secrets_manager(proxy: &AwsProxy) -> aws_sdk_secretsmanager::Client {
    aws_sdk_secretsmanager::Client::new(&without_retries(proxy))
}
