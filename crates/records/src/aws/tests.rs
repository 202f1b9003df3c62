use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::BodyExt;
use rcgen::generate_simple_self_signed;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, pem::PemObject},
};
use test_support::{assert_program, program};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use super::*;

#[tokio::test]
#[ignore = "a program that tests start"]
async fn getting_program_of_tests() {
    assert_program();
    let is_set = |name: &str| env::var_os(name).is_some();
    let roots = Roots::new("us-east-1", None, is_set);
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(env::var("URL").unwrap()).unwrap();
    let body = match Connections(roots).call(request).await {
        Ok(response) => Some(response.into_body().collect().await.unwrap().to_bytes()),
        Err(_) => None,
    };
    println!("body: {body:?}");
}

/// Starts a server that answers one request, with a certificate that no store contains. Returns its URL,
/// and the file with the certificate.
async fn start(name: &str) -> (String, PathBuf) {
    let own = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let text = STANDARD.encode(own.cert.der());
    let file = env::temp_dir().join(format!("{name}-{}.pem", std::process::id()));
    let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    fs::write(&file, pem).unwrap();
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}/",
        listener.local_addr().unwrap().port()
    );
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        if let Ok(mut stream) = acceptor.accept(socket).await {
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none";
            stream.write_all(response).await.unwrap();
            // Until the client has closed the connection.
            let _ = stream.read(&mut [0]).await;
        }
    });
    (url, file)
}

/// On Lambda.
#[tokio::test(flavor = "multi_thread")]
async fn only_amazons_certificates_and_those_in_the_environment_are_trusted() {
    for (variable, body) in [
        ("SSL_CERT_FILE", r#"body: Some(b"one")"#),
        ("ANOTHER_VARIABLE", "body: None"),
    ] {
        let (url, file) = start(variable).await;
        let mut command = program("aws::tests::getting_program_of_tests");
        command.env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9");
        command
            .env_remove("SSL_CERT_FILE")
            .env_remove("SSL_CERT_DIR");
        let output = command.env(variable, &file).env("URL", url).output();
        fs::remove_file(file).unwrap();
        let printed = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(printed.contains(body), "{printed}");
    }
}

/// The client of a service tries again after an error of this kind. A redirect could lead anywhere.
#[tokio::test]
async fn a_closed_connection_may_be_tried_again_and_no_redirect_is_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let location = url.clone();
    let server = tokio::spawn(async move {
        drop(listener.accept().await.unwrap());
        let (mut socket, _) = listener.accept().await.unwrap();
        assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
        let head = format!("HTTP/1.1 302 \r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
    });
    let call = || {
        let mut request = HttpRequest::new(SdkBody::from("one"));
        request.set_uri(url.clone()).unwrap();
        request.set_method("POST").unwrap();
        Connections(Roots::Machine).call(request)
    };
    assert!(call().await.unwrap_err().is_io());
    assert_eq!(call().await.unwrap().status().as_u16(), 302);
    server.await.unwrap();
}

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
