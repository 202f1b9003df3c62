//! What only Parameter Store has: types, paths, versions, and requests that fail as a whole.

use test_support::{
    assert_program,
    aws::CREDENTIALS,
    lambda::{LONG, calling, invoke_on},
    program,
};

use super::*;
use crate::support::failed_start;

fn secrets(proxy: &AwsProxy, prefix: &str) -> Secrets {
    Service::ParameterStore.secrets(proxy, prefix)
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn parameters_have_any_type_and_are_found_by_name_or_arn() {
    let (_emulator, proxy) = emulated().await;
    for (name, kind, value) in [
        ("/prod/SECURE", "SecureString", "decrypted"),
        ("/prod/PLAIN", "String", "plain text"),
        ("/prod/LIST", "StringList", "one,two"),
    ] {
        proxy.put_parameter(name, kind, value).await;
    }
    let arn = "arn:aws:ssm:us-east-1:123456789012:parameter/prod/";
    for prefix in ["/prod/", arn] {
        let ids = ["SECURE", "PLAIN", "LIST"];
        let router = revealing(&ids, secrets(&proxy, prefix));
        let values = value_or_detail(&router, "T.T").await;
        assert_eq!(values, json!(["decrypted", "plain text", "one,two"]));
        let requests = proxy.take_requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].1["WithDecryption"], true);
    }
}

/// Parameter Store's messages for a parameter that the role may not read, whose key it may not use,
/// and whose name is not valid. Each fails the whole request.
const REFUSALS: [(&str, &str, &str); 3] = [
    (
        "AccessDeniedException",
        "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: ssm:GetParameters on \
         resource: arn:aws:ssm:us-east-1:1:parameter/prod/KMS_KEY because no identity-based policy \
         allows the ssm:GetParameters action",
        "access denied: allow ssm:GetParameters on {}",
    ),
    (
        "AccessDeniedException",
        "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: kms:Decrypt on \
         resource: arn:aws:kms:us-east-1:1:key/1 because no identity-based policy allows the \
         kms:Decrypt action (Service: Kms, Status Code: 400)",
        "access denied: allow kms:Decrypt on the KMS key that encrypts {}",
    ),
    (
        "ValidationException",
        "Parameter name: can't be prefixed with \"ssm\" (case-insensitive).",
        "does not accept {} (ValidationException)",
    ),
];

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_refused_parameter_does_not_affect_others() {
    let (_emulator, proxy) = emulated().await;
    let ids = ["A", "KMS_KEY", "Z"];
    for id in ids {
        let name = format!("/prod/{id}");
        proxy.put_parameter(&name, "SecureString", id).await;
    }
    let names = ["T.A@1.0.0", "T.Key@1.0.0", "T.Z@1.0.0"];
    for (code, message, expected) in REFUSALS {
        proxy.refuse("/prod/KMS_KEY", code, message);
        let tools = names.iter().zip(ids);
        let tools = tools.map(|(name, id)| revealing_tool(name, &[id]));
        let router = router(tools.collect(), secrets(&proxy, "/prod/"));
        assert_eq!(value_or_detail(&router, "T.A").await, json!(["A"]));
        assert_eq!(value_or_detail(&router, "T.Z").await, json!(["Z"]));
        let detail = value_or_detail(&router, "T.Key").await;
        let resource = "arn:aws:ssm:us-east-1:*:parameter/prod/KMS_KEY";
        let expected = expected.replace("{}", resource);
        assert!(detail.as_str().unwrap().contains(&expected), "{detail}");
        let sizes = Service::ParameterStore.take_batches(&proxy);
        assert_eq!(sizes, [3, 1, 1, 1], "{code}");
    }
    // A throttled request is not split.
    proxy.fail_with(400, "ThrottlingException", "Rate exceeded");
    let router = revealing(&["A", "B", "C"], secrets(&proxy, ""));
    let detail = value_or_detail(&router, "T.T").await;
    assert!(detail.as_str().unwrap().contains("throttled: "), "{detail}");
    let sizes = Service::ParameterStore.take_batches(&proxy);
    assert!(!sizes.is_empty());
    assert!(sizes.iter().all(|&size| size == 3), "{sizes:?}");
}

/// A function that reveals a secret, and whose store its settings choose.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn revealing_program_of_tests() {
    assert_program();
    let toolkit = Toolkit::new([revealing_tool("T.T@1.0.0", &["KEY"])]).unwrap();
    lambda_tools::serve(toolkit).await.unwrap();
}

const PROGRAM: &str = "aws_secrets::parameter_store::revealing_program_of_tests";

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn settings_choose_the_store_its_prefix_and_its_endpoint() {
    let (_emulator, proxy) = emulated().await;
    proxy
        .put_parameter("/my-stack/KEY", "SecureString", "from a setting")
        .await;
    let url = proxy.url();
    let settings = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ENDPOINT_URL_SSM", &*url),
        ("TOOLS_AUTH", "none"),
        ("TOOLS_SECRETS", "parameter-store"),
        ("TOOLS_SECRETS_PREFIX", "/my-stack/"),
    ];
    let environment = [&CREDENTIALS[..], &settings].concat();
    let events = [(calling(&json!({"tool_id": "T.T"}), &[]), LONG)];
    let (reports, _) = invoke_on(&mut program(PROGRAM), &events, &environment).await;
    let body = reports[0].1["body"].as_str().unwrap();
    assert!(body.contains(r#""value":["from a setting"]"#), "{body}");
    assert_eq!(proxy.take_actions(), ["GetParameters"]);
}

#[test]
fn the_name_of_a_json_secret_is_an_error_at_start_up() {
    let settings = [
        ("TOOLS_SECRETS", "parameter-store"),
        ("TOOLS_SECRETS_JSON", "prod/tools"),
    ];
    let text = failed_start(program(PROGRAM).envs(settings));
    let reason = "TOOLS_SECRETS_JSON is for TOOLS_SECRETS=secrets-manager";
    assert!(text.contains(reason), "{text}");
}
