//! The log and the metrics of a running function, compared with the tables in
//! `docs/production.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use serde_json::{Value, json};
use test_support::{
    aws::{CREDENTIALS, emulated},
    call_at,
    documents::{quoted, table},
    lambda::{LONG, calling, event, invoke_on, request_id},
};

use crate::support::{Running, toolbox};
use events::{Stub, TWILIO_KEY};

const KEY: &str = "key-for-the-log-0123456789";
/// Part of inputs and secrets; may not appear in any log line.
const MARK: &str = "8675309";

/// Returns a request of each kind, with the expected fields of its line. A row is an event, or has the
/// body of a request, whose method, path and key are usual unless it says otherwise.
fn requests() -> Vec<(Value, Value)> {
    let rows = serde_json::from_str::<Vec<Value>>(include_str!("observed.json")).unwrap();
    let rows = rows.into_iter().map(|mut row| {
        let expected = row["logs"].take();
        if row["event"].is_object() {
            return (row["event"].take(), expected);
        }
        let text = |name: &str, usual: &str| row[name].as_str().unwrap_or(usual).to_owned();
        let key = format!("Bearer {}", text("key", KEY));
        let mut event = calling(&row["body"], &[("authorization", &key)]);
        let (path, method) = (text("path", "/tools/call"), text("method", "POST"));
        if row["body"].is_null() {
            event.as_object_mut().unwrap().remove("body");
        }
        event["rawPath"] = path.as_str().into();
        event["requestContext"]["http"]["method"] = method.into();
        event["requestContext"]["http"]["path"] = path.into();
        (event, expected)
    });
    rows.collect()
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "time" => {
            let text = value.as_str().unwrap_or_default();
            text.ends_with('Z') && humantime::parse_rfc3339(text).is_ok()
        }
        "text" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("the table has the unknown type '{other}'"),
    }
}

/// Compares lines with the tables: every field is listed and has its type, every listed field
/// occurs, and every reason is listed.
fn assert_documented(lines: &[Value]) {
    let rows = table("field");
    let rows = rows.iter().map(|row| (quoted(&row[0]).remove(0), row));
    let rows: BTreeMap<_, _> = rows.collect();
    for line in lines {
        for (name, value) in line.as_object().unwrap() {
            let row = rows.get(name);
            let row = row.unwrap_or_else(|| panic!("'{name}' is not in the table: {line}"));
            assert!(
                is_of_type(value, &row[1]),
                "{name} is no {}: {line}",
                row[1]
            );
        }
    }
    for (name, row) in rows {
        let count = lines
            .iter()
            .filter(|line| line.get(&name).is_some())
            .count();
        assert!(count > 0, "never logged: {name}");
        assert!(row[2] != "always" || count == lines.len(), "{name}");
    }
    let reasons = table("reason");
    let listed: BTreeSet<_> = reasons.iter().flat_map(|row| quoted(&row[0])).collect();
    let logged = lines.iter().filter_map(|line| line["reason"].as_str());
    let logged: BTreeSet<_> = logged.map(str::to_owned).collect();
    assert!(logged.is_subset(&listed), "{logged:?} is not in {listed:?}");
}

/// Compares metric lines with their format and with the table.
fn assert_metrics(lines: &[Value]) {
    let rows = table("metric");
    let documented: BTreeMap<String, String> = rows
        .iter()
        .map(|row| (quoted(&row[0]).remove(0), row[1].clone()))
        .collect();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = u64::try_from(now.unwrap().as_millis()).unwrap();
    let mut seen = BTreeSet::new();
    for line in lines {
        let time = line["_aws"]["Timestamp"].as_u64().unwrap();
        assert!(time <= now && now - time < 60_000, "{line}");
        let mut used: BTreeSet<&str> = ["_aws"].into();
        for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
            for dimension in directive["Dimensions"][0].as_array().unwrap() {
                let name = dimension.as_str().unwrap();
                assert!(!line[name].as_str().unwrap().is_empty(), "{line}");
                used.insert(name);
            }
            for metric in directive["Metrics"].as_array().unwrap() {
                let name = metric["Name"].as_str().unwrap();
                assert_eq!(metric["Unit"], documented[name], "{name}");
                assert!(line[name].is_number(), "{name} has no value: {line}");
                used.insert(name);
                seen.insert(name.to_owned());
            }
        }
        let all: BTreeSet<_> = line.as_object().unwrap().keys().map(|it| &**it).collect();
        assert_eq!(all, used, "{line}");
    }
    // The secrets of tools are read before the first call.
    seen.insert("SecretCacheMisses".to_owned());
    assert_eq!(seen, documented.keys().cloned().collect());
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn the_log_and_the_metrics_match_the_tables() {
    let (_emulator, proxy) = emulated().await;
    for (name, value) in [("TWILIO_API_KEY", TWILIO_KEY), ("TOOLS_API_KEY", KEY)] {
        proxy.put_secret(name, value).await;
    }
    let stub = Stub::start().await;
    let (url, aws) = (stub.url(), proxy.url());
    let mut environment = CREDENTIALS.to_vec();
    environment.extend([
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_METRICS", "cloudwatch"),
        ("TWILIO_URL", &url),
        ("AWS_ENDPOINT_URL", &aws),
        // Has an effect only in the local server.
        ("LOG_CALLS", "yes"),
    ]);
    let requests = requests();
    let events: Vec<_> = requests.iter().map(|(it, _)| (it.clone(), LONG)).collect();
    let (answers, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    for line in &printed {
        for secret in [KEY, TWILIO_KEY, "It is", MARK] {
            assert!(!line.contains(secret), "{line}");
        }
    }
    let printed: Vec<Value> = printed
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    let (metrics, lines): (Vec<_>, Vec<_>) = printed
        .into_iter()
        .partition(|line| line.get("_aws").is_some());
    let lines: Vec<_> = lines
        .into_iter()
        .filter(|line| ["call", "list"].contains(&line["message"].as_str().unwrap()))
        .collect();
    assert_eq!(lines.len(), requests.len(), "{lines:#?}");
    for (number, (line, (_, expected))) in lines.iter().zip(&requests).enumerate() {
        assert_eq!(line["requestId"], request_id(number));
        for (name, value) in expected.as_object().unwrap() {
            let answer = &answers[number];
            assert_eq!(&line[name], value, "{name} in {line}\n{answer:?}");
        }
        assert_eq!(line["cold_start"] == true, number == 0);
    }
    assert_documented(&lines);
    // One line for each call, none for a list.
    assert_eq!(metrics.len(), requests.len() - 1);
    assert_metrics(&metrics);
    let sum = |name: &str| -> u64 { metrics.iter().filter_map(|it| it[name].as_u64()).sum() };
    let sums = "Calls Failures Replays ValidationErrors Rejections".split(' ');
    assert_eq!(sums.map(sum).collect::<Vec<_>>(), [10, 1, 1, 2, 5]);
    assert_eq!(sum("SecretCacheHits"), 3);
    // Names that callers invent are not dimensions.
    let unknown = metrics.iter().find(|it| it["reason"] == "unknown_tool");
    assert_eq!(unknown.unwrap()["tool"], "none");
}

#[tokio::test]
async fn the_format_and_the_level_of_the_log_can_be_set() {
    let events = [(event("calculator/add.header-form"), LONG)];
    let printed = async |variable: (&str, &str)| {
        let (_, lines) = invoke_on(&mut toolbox(), &events, &[variable]).await;
        lines.into_iter().find(|line| line.contains("success"))
    };
    let line = printed(("AWS_LAMBDA_LOG_FORMAT", "Text")).await.unwrap();
    assert!(line.contains("tool=\"Calculator.Add\""), "{line}");
    // No caller has waited for this process to start.
    let provisioned = ("AWS_LAMBDA_INITIALIZATION_TYPE", "provisioned-concurrency");
    let line = printed(provisioned).await.unwrap();
    assert!(!line.contains("cold_start"), "{line}");
    // The line's level is below these levels.
    assert_eq!(printed(("AWS_LAMBDA_LOG_LEVEL", "ERROR")).await, None);
    let environment = [("AWS_LAMBDA_LOG_LEVEL", "FATAL"), ("RUST_LOG", "trace")];
    let (_, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    assert_eq!(printed, Vec::<String>::new());
}

#[tokio::test]
async fn inputs_and_outputs_can_be_shown_locally() {
    for (setting, is_shown) in [("yes", true), ("no", false)] {
        let (running, url) = Running::serving(toolbox().env("LOG_CALLS", setting));
        let body = json!({"tool_id": "Calculator.Add", "input": {"a": 8_675_000, "b": 309}});
        assert_eq!(call_at(&url, &body).await.0, 200);
        let lines = running.end();
        let shows = |text: &str| lines.iter().any(|line| line.contains(text));
        assert_eq!(shows("8675000"), is_shown, "{lines:?}");
        assert_eq!(shows(MARK), is_shown, "{lines:?}");
    }
}
