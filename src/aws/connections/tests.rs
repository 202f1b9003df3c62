mod server;

use std::{env, net::TcpListener, time::Duration};

use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt;
use test_support::{assert_program, program};

use super::*;
use server::{Authority, Server};

/// Sends a request and returns the body of the response.
async fn post(roots: Roots, url: &str, body: &str) -> Result<String, ConnectorError> {
    let settings = HttpConnectorSettings::builder();
    let settings = settings.connect_timeout(Duration::from_secs(5)).build();
    let mut request = HttpRequest::new(SdkBody::from(body));
    request.set_method("POST").unwrap();
    request.set_uri(url).unwrap();
    let response = connector(roots, &settings).call(request).await?;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
#[ignore = "a program that tests start"]
async fn posting_program_of_tests() {
    assert_program();
    tracing_subscriber::fmt().with_ansi(false).init();
    let is_set = |name: &str| env::var_os(name).is_some();
    let roots = match env::var("ROOTS").as_deref() {
        Ok("amazon") => Roots::Amazon,
        _ => Roots::new("us-east-1", None, is_set),
    };
    let url = env::var("URL").unwrap();
    for body in ["one", "two"] {
        match post(roots, &url, body).await {
            Ok(body) => println!("response: {body}"),
            Err(error) => println!("error: {:?}", certificate_error(&error)),
        }
    }
}

/// Returns the responses and warnings of the program above, whose machine trusts an authority.
fn output(server: &Server, trusted: &Authority, roots: &str) -> (Vec<String>, Vec<String>) {
    let mut command = program("aws::connections::tests::posting_program_of_tests");
    command.env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9");
    command.env("SSL_CERT_FILE", trusted.file());
    command.env("URL", server.url()).env("ROOTS", roots);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines = |is_wanted: fn(&str) -> bool| {
        let lines = text.lines().filter(|line| is_wanted(line));
        lines.map(str::to_owned).collect()
    };
    (
        lines(|line| line.starts_with("response: ") || line.starts_with("error: ")),
        lines(|line| line.contains(" WARN ")),
    )
}

#[test]
fn certificates_in_the_environment_are_used_from_the_start() {
    let authority = Authority::new("environment");
    let server = Server::start(&authority);
    let (responses, warnings) = output(&server, &authority, "");
    assert_eq!(responses, ["response: one", "response: two"]);
    assert_eq!(server.log(), ["accepted", "one", "two"]);
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn a_certificate_that_is_not_amazons_makes_clients_use_the_machines() {
    let authority = Authority::new("machine");
    let server = Server::start(&authority);
    let (responses, warnings) = output(&server, &authority, "amazon");
    assert_eq!(responses, ["response: one", "response: two"]);
    assert_eq!(server.log(), ["rejected", "accepted", "one", "two"]);
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(warning.contains("(UnknownIssuer)"), "{warning}");
    assert!(warning.contains("SSL_CERT_FILE"), "{warning}");
}

#[test]
fn a_certificate_that_is_in_no_store_is_rejected() {
    let server = Server::start(&Authority::new("unknown"));
    let (responses, _) = output(&server, &Authority::new("other"), "amazon");
    let error = "error: Some(UnknownIssuer)";
    assert_eq!(responses, [error; 2]);
    assert_eq!(server.log(), ["rejected"; 3]);
}

#[tokio::test]
async fn other_failures_of_connections_do_not_change_the_roots() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        // Closes the first connection during the handshake, and waits for no other.
        drop(listener.accept().unwrap());
        listener.set_nonblocking(true).unwrap();
        listener
    });
    let error = post(Roots::Amazon, &url, "").await.unwrap_err();
    assert_eq!(certificate_error(&error), None);
    let listener = server.join().unwrap();
    assert!(listener.accept().is_err(), "a second connection");
    assert!(!REJECTED.load(Relaxed));
}
