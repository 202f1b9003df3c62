//! The connections of all AWS clients.

use std::sync::OnceLock;

use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    http::{HttpClient, HttpConnectorSettings, SharedHttpConnector},
    runtime_components::RuntimeComponents,
};

use super::roots::Roots;

/// The connections, which all services share: most of the time spent creating them goes to
/// decoding certificates. The settings are always those of [`config`](super::config).
#[derive(Clone, Debug)]
pub(super) struct Connections(pub(super) Roots);

impl HttpClient for Connections {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        connector(self.0, settings)
    }
}

/// Returns the shared connections. The first request opens one, and decodes the certificates.
fn connector(roots: Roots, settings: &HttpConnectorSettings) -> SharedHttpConnector {
    /// One for each value of `Roots`.
    static CONNECTIONS: [OnceLock<SharedHttpConnector>; 2] = [const { OnceLock::new() }; 2];
    let connector = CONNECTIONS[roots as usize].get_or_init(|| {
        let connector = Connector::builder()
            .connector_settings(settings.clone())
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .tls_context(roots.tls_context());
        SharedHttpConnector::new(connector.build())
    });
    connector.clone()
}

#[cfg(test)]
mod tests;
