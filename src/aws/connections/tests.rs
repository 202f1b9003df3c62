mod server;

use std::env;

use aws_smithy_runtime_api::client::{http::HttpConnector, orchestrator::HttpRequest};
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt;
use test_support::{assert_program, program};

use super::*;
use server::{Authority, Server};

/// Sends a request and returns the body of the response, or nothing if none came.
async fn post(roots: Roots, url: &str, body: &str) -> Option<String> {
    let settings = HttpConnectorSettings::builder().build();
    let mut request = HttpRequest::new(SdkBody::from(body));
    request.set_method("POST").unwrap();
    request.set_uri(url).unwrap();
    let response = connector(roots, &settings).call(request).await.ok()?;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Some(String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
#[ignore = "a program that tests start"]
async fn posting_program_of_tests() {
    assert_program();
    let is_set = |name: &str| env::var_os(name).is_some();
    let roots = Roots::new("us-east-1", None, is_set);
    let response = post(roots, &env::var("URL").unwrap(), "one").await;
    println!("response: {response:?}");
}

/// Returns what the program above prints on Lambda, with this variable.
fn printed(server: &Server, variable: &str, trusted: &Authority) -> String {
    let mut command = program("aws::connections::tests::posting_program_of_tests");
    command.env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9");
    command
        .env_remove("SSL_CERT_FILE")
        .env_remove("SSL_CERT_DIR");
    command
        .env(variable, trusted.file())
        .env("URL", server.url());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn only_amazons_certificates_and_those_in_the_environment_are_trusted() {
    for (variable, response, log) in [
        ("SSL_CERT_FILE", r#"Some("one")"#, &["accepted", "one"][..]),
        ("ANOTHER_VARIABLE", "None", &["rejected"]),
    ] {
        let authority = Authority::new(variable);
        let server = Server::start(&authority);
        let printed = printed(&server, variable, &authority);
        let line = format!("response: {response}");
        assert!(printed.contains(&line), "{printed}");
        assert_eq!(server.log(), log);
    }
}
