//! AWS clients for the emulator's proxy.

#[cfg(feature = "dynamodb")]
use aws_sdk_dynamodb::config as of_dynamodb;
#[cfg(feature = "secrets-manager")]
use aws_sdk_secretsmanager::config as of_secrets_manager;
use test_support::aws::AwsProxy;

#[cfg(feature = "dynamodb")]
pub(crate) fn dynamodb(proxy: &AwsProxy) -> aws_sdk_dynamodb::Client {
    dynamodb_at(&proxy.url())
}

#[cfg(feature = "dynamodb")]
pub(crate) fn dynamodb_at(url: &str) -> aws_sdk_dynamodb::Client {
    use of_dynamodb::{BehaviorVersion, Config, Credentials, Region};

    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(url);
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

#[cfg(feature = "secrets-manager")]
pub(crate) fn secrets_manager(proxy: &AwsProxy) -> aws_sdk_secretsmanager::Client {
    use of_secrets_manager::{BehaviorVersion, Config, Credentials, Region};

    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(proxy.url());
    aws_sdk_secretsmanager::Client::from_conf(config.build())
}
