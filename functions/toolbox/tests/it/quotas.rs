//! Quotas of the deployed binary, whose instances share a table.

use serde_json::{Value, json};
use test_support::{
    aws::CREDENTIALS,
    dynamodb::DynamoDb,
    lambda::{LONG, Platform, calling},
};

use crate::support::toolbox;

#[tokio::test]
#[ignore = "needs what sam build makes; run tests/all"]
async fn two_instances_accept_as_many_calls_as_the_quota_allows() {
    let table = DynamoDb::start("calls").await;
    let url = table.url();
    let settings = [
        ("AWS_ENDPOINT_URL_DYNAMODB", &*url),
        ("TOOLS_AUTH", "none"),
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
        ("TOOLS_METRICS", "cloudwatch"),
        ("TOOLS_QUOTAS", "tool=5/day"),
    ];
    let environment = [&CREDENTIALS[..], &settings].concat();
    let mut instances = Vec::new();
    for _ in 0..2 {
        instances.push(Platform::start(&mut toolbox(), &[], &environment).await);
    }
    let add = calling(
        &json!({"tool_id": "Calculator.Add", "input": {"a": 1, "b": 2}}),
        &[],
    );
    let (mut accepted, mut rejected) = (0, Vec::new());
    for _ in 0..4 {
        // Both at the same time.
        for instance in &instances {
            instance.send_events(&[(add.clone(), LONG)]);
        }
        for instance in &mut instances {
            let (failed, answer, _) = instance.reports(1).await.remove(0);
            assert!(!failed, "{answer}");
            if answer["statusCode"] == 200 {
                accepted += 1;
            } else {
                rejected.push(answer);
            }
        }
    }
    assert_eq!((accepted, rejected.len()), (5, 3));
    for answer in &rejected {
        let headers = &answer["headers"];
        assert_eq!(answer["statusCode"], 400);
        let seconds: u64 = headers["retry-after"].as_str().unwrap().parse().unwrap();
        assert!((1..=86_400).contains(&seconds), "{seconds}");
        assert_eq!(headers["ratelimit"], format!(r#""tool";r=0;t={seconds}"#));
    }
    let lines: Vec<String> = instances.into_iter().flat_map(Platform::end).collect();
    let lines: Vec<Value> = lines
        .iter()
        .filter_map(|it| serde_json::from_str(it).ok())
        .collect();
    let logged = lines.iter().filter(|it| it["reason"] == "quota_exceeded");
    // The log, and the metric with the dimension `reason`.
    assert_eq!(
        logged.clone().filter(|it| it["message"] == "call").count(),
        3
    );
    assert_eq!(logged.filter(|it| it["Rejections"] == 1).count(), 3);
}
