//! The root certificates that AWS clients trust.
//!
//! Decoding the machine's certificates takes longer than the rest of a cold start, and Amazon's
//! endpoints need five of them.

use aws_smithy_http_client::tls::{TlsContext, TrustStore};

/// Amazon Root CA 1 to 4 and the Starfield Services Root Certificate Authority - G2, from Debian's
/// copy of Mozilla's list; <https://www.amazontrust.com/repository/> has them as well. The last one
/// expires first, at the end of 2037; Amazon Root CA 1 expires on 2038-01-17, the others on
/// 2040-05-26.
const AMAZON: &[u8] = include_bytes!("amazon_roots.pem");

/// The prefixes of regions outside of the partitions `aws` and `aws-us-gov`: their endpoints may
/// use other certificate authorities.
const OTHER_PARTITIONS: [&str; 4] = ["cn-", "eu-iso", "eusc-", "us-iso"];

/// Variables that name certificates.
const CERTIFICATE_VARIABLES: [&str; 3] = ["AWS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"];

/// The root certificates of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those of Amazon's endpoints.
    Amazon,
    /// Those of the machine, or of the files in the environment.
    Machine,
}

impl Roots {
    /// Returns the roots for an endpoint; without one, it is Amazon's. `is_set` looks a variable
    /// up.
    pub(super) fn new(
        region: &str,
        endpoint: Option<&str>,
        is_set: impl Fn(&str) -> bool + Copy,
    ) -> Self {
        let is_public = !OTHER_PARTITIONS.iter().any(|it| region.starts_with(it));
        let is_default = endpoint.is_none() && !CERTIFICATE_VARIABLES.into_iter().any(is_set);
        if is_set("AWS_LAMBDA_RUNTIME_API") && is_default && is_public {
            Self::Amazon
        } else {
            Self::Machine
        }
    }

    pub(super) fn tls_context(self) -> TlsContext {
        match self {
            Self::Amazon => {
                let roots = TrustStore::empty().with_pem_certificate(AMAZON);
                let context = TlsContext::builder().with_trust_store(roots).build();
                context.expect("the builder accepts any trust store")
            }
            Self::Machine => TlsContext::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use rustls::{
        RootCertStore,
        pki_types::{CertificateDer, pem::PemObject},
    };
    use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

    use super::*;

    fn on_lambda(variable: &str) -> bool {
        variable == "AWS_LAMBDA_RUNTIME_API"
    }

    #[test]
    fn only_amazons_public_endpoints_on_lambda_need_just_amazons_roots() {
        let elsewhere = |_: &str| false;
        assert_eq!(Roots::new("us-east-1", None, elsewhere), Roots::Machine);
        let endpoint = Some("https://localhost:8000");
        assert_eq!(Roots::new("us-east-1", endpoint, on_lambda), Roots::Machine);
        for variable in ["SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE"] {
            let is_set = |it: &str| on_lambda(it) || it == variable;
            let roots = Roots::new("us-east-1", None, is_set);
            assert_eq!(roots, Roots::Machine, "{variable}");
        }
        for (region, roots) in [
            ("eu-central-1", Roots::Amazon),
            ("us-gov-west-1", Roots::Amazon),
            ("us-east-1", Roots::Amazon),
            ("cn-north-1", Roots::Machine),
            ("eusc-de-east-1", Roots::Machine),
            ("us-isob-east-1", Roots::Machine),
            ("eu-isoe-west-1", Roots::Machine),
        ] {
            assert_eq!(Roots::new(region, None, on_lambda), roots, "{region}");
        }
    }

    fn certificates() -> Vec<CertificateDer<'static>> {
        let certificates = CertificateDer::pem_slice_iter(AMAZON);
        certificates.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn amazons_roots_can_be_parsed_and_are_among_mozillas() {
        let certificates = certificates();
        let mut store = RootCertStore::empty();
        for certificate in &certificates {
            assert!(TLS_SERVER_ROOT_CERTS.contains(certificate));
            store.add(certificate.clone()).unwrap();
        }
        assert_eq!(store.len(), 5);
        let names = [1, 2, 3, 4].map(|number| format!("Amazon Root CA {number}"));
        let starfield = "Starfield Services Root Certificate Authority - G2".to_owned();
        for (name, root) in names.iter().chain(&[starfield]).zip(&store.roots) {
            let subject = String::from_utf8_lossy(&root.subject);
            assert!(subject.ends_with(&**name), "{subject}");
        }
    }

    #[test]
    fn amazons_roots_are_valid_for_three_more_years() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let this_year = 1970 + now.as_secs() / (365 * 24 * 60 * 60 + 6 * 60 * 60);
        let years: Vec<_> = certificates().iter().map(|it| last_year(it)).collect();
        assert_eq!(years, [2038, 2040, 2040, 2040, 2037]);
        assert!(years.iter().all(|year| *year > this_year + 3), "{years:?}");
    }

    /// Returns the year in which a certificate expires.
    fn last_year(certificate: &[u8]) -> u64 {
        // A validity with two times in the format YYMMDDhhmmssZ (RFC 5280, section 4.1.2.5.1).
        const VALIDITY: [u8; 4] = [0x30, 30, 0x17, 13];
        let mut windows = certificate.windows(VALIDITY.len() + 13 + 2 + 13);
        let validity = windows.find(|it| it.starts_with(&VALIDITY)).unwrap();
        let year = std::str::from_utf8(&validity[19..21]).unwrap();
        2000 + year.parse::<u64>().unwrap()
    }
}
