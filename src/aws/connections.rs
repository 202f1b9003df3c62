//! The connections of all AWS clients.
//!
//! A proxy that inspects TLS has a certificate of its own, which is in the machine's store. Clients
//! that trust only Amazon's roots therefore fall back to the machine's.

use std::{
    error::Error,
    io, iter,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    },
    orchestrator::HttpRequest,
    result::ConnectorError,
    runtime_components::RuntimeComponents,
};
use rustls::CertificateError;

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

fn connector(roots: Roots, settings: &HttpConnectorSettings) -> SharedHttpConnector {
    match roots {
        Roots::Amazon => SharedHttpConnector::new(WithFallback(settings.clone())),
        Roots::Machine => connections(Roots::Machine, settings),
    }
}

/// Returns the shared connections. The first request opens one, and decodes the certificates.
fn connections(roots: Roots, settings: &HttpConnectorSettings) -> SharedHttpConnector {
    static AMAZON: OnceLock<SharedHttpConnector> = OnceLock::new();
    static MACHINE: OnceLock<SharedHttpConnector> = OnceLock::new();
    let connections = match roots {
        Roots::Amazon => &AMAZON,
        Roots::Machine => &MACHINE,
    };
    let connector = connections.get_or_init(|| {
        let connector = Connector::builder()
            .connector_settings(settings.clone())
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .tls_context(roots.tls_context());
        SharedHttpConnector::new(connector.build())
    });
    connector.clone()
}

/// Trusts Amazon's roots until they reject a certificate, and the machine's from then on.
#[derive(Debug)]
struct WithFallback(HttpConnectorSettings);

/// True once Amazon's roots have rejected a certificate.
static REJECTED: AtomicBool = AtomicBool::new(false);

impl HttpConnector for WithFallback {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if REJECTED.load(Relaxed) {
            return connections(Roots::Machine, &self.0).call(request);
        }
        let settings = self.0.clone();
        // Cheap: the bodies of all requests are in memory, and shared.
        let copy = request.try_clone();
        let response = connections(Roots::Amazon, &settings).call(request);
        HttpConnectorFuture::new(async move {
            let error = match response.await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let Some((reason, copy)) = certificate_error(&error).zip(copy) else {
                return Err(error);
            };
            fall_back(reason);
            // The server has seen nothing of the request: it is sent after the handshake.
            connections(Roots::Machine, &settings).call(copy).await
        })
    }
}

fn fall_back(reason: &CertificateError) {
    if !REJECTED.swap(true, Relaxed) {
        tracing::warn!(
            "Amazon's root certificates do not verify the certificate of an AWS endpoint \
             ({reason}), so the machine's certificates are used; to use them from the start, set \
             SSL_CERT_FILE"
        );
    }
}

/// Returns the reason why the certificate of a server was rejected.
///
/// Any reason counts, not only an unknown issuer: with other roots, the verifier may find another
/// chain.
fn certificate_error(error: &ConnectorError) -> Option<&CertificateError> {
    let mut chain = iter::successors(Some(error as &(dyn Error + 'static)), |&error| {
        match error.downcast_ref::<io::Error>() {
            // Its source would be the source of the error that it contains.
            Some(error) => error.get_ref().map(|it| it as &(dyn Error + 'static)),
            None => error.source(),
        }
    });
    chain.find_map(|error| match error.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(reason)) => Some(reason),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
