use std::{env, fs, path::PathBuf, sync::Arc};

use aws_smithy_runtime_api::client::{http::HttpConnector, orchestrator::HttpRequest};
use aws_smithy_types::body::SdkBody;
use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::BodyExt;
use rcgen::generate_simple_self_signed;
use rustls::{ServerConfig, crypto::aws_lc_rs::default_provider, pki_types::PrivatePkcs8KeyDer};
use test_support::{assert_program, program};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;

#[tokio::test]
#[ignore = "a program that tests start"]
async fn getting_program_of_tests() {
    assert_program();
    let is_set = |name: &str| env::var_os(name).is_some();
    let roots = Roots::new("us-east-1", None, is_set);
    let settings = HttpConnectorSettings::builder().build();
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(env::var("URL").unwrap()).unwrap();
    let body = match connector(roots, &settings).call(request).await {
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
        let mut command = program("aws::connections::tests::getting_program_of_tests");
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
