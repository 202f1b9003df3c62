//! The explorer's page, served by the compiled programs. `long/explorer.rs` opens it in a browser.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    Running,
    lambda::{LONG, calling, event, invoke_on, request_id},
};

use crate::support::toolbox;

const KEY: &str = "marked-key-of-a-partner";

#[tokio::test]
async fn the_page_is_announced_and_served_unless_it_is_turned_off() {
    for (setting, status) in [("", 200), ("yes", 200), ("no", 404)] {
        let running = Running::start(toolbox().env("PORT", "0").env("TOOLS_EXPLORER", setting));
        let line = running.line_with("Serving tools on", 20);
        let url = line.split_once("on ").unwrap().1.to_owned();
        let next = running.line_with("", 5);
        let announced = format!("Explore and try the tools: {url}/");
        assert_eq!(next == announced, status == 200, "{next}");
        let response = reqwest::get(format!("{url}/")).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{setting}");
    }
}

#[tokio::test]
async fn the_page_is_not_recorded() {
    let folder = std::env::temp_dir().join(format!("explored-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let (running, url) = Running::serving(toolbox().env("RECORD_EVENTS", &folder));
    for path in ["/", "/explorer.json", "/tools"] {
        reqwest::get(format!("{url}{path}")).await.unwrap();
    }
    running.line_with("tools.json", 5);
    let files = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(files, 2, "the list of tools and its expected response");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn on_lambda_the_page_has_to_be_turned_on() {
    let limit = Some(Duration::from_secs(30));
    let get = |path: &str| {
        let mut event = event("sources/http-api");
        event["rawPath"] = path.into();
        event["requestContext"]["http"]["path"] = path.into();
        event["requestContext"]["http"]["method"] = "GET".into();
        event["body"] = Value::Null;
        (event, limit)
    };
    let events = [get("/"), get("/explorer.json")];
    for (setting, auth, statuses) in [
        ("", "none", [404, 404]),
        ("no", "none", [404, 404]),
        ("yes", "none", [200, 200]),
        ("yes", "api-key", [401, 401]),
    ] {
        let environment = [
            ("TOOLS_EXPLORER", setting),
            ("TOOLS_AUTH", auth),
            ("TOOLS_API_KEY", KEY),
        ];
        let reports = crate::lambda::invoke(&events, &environment).await;
        for ((_, answer, _), status) in reports.iter().zip(statuses) {
            assert_eq!(answer["statusCode"], status, "{setting} {auth}");
        }
        let page = reports[0].1["body"].as_str().unwrap();
        let is_page = page.starts_with("<!DOCTYPE html>");
        assert_eq!(is_page, setting == "yes", "{setting} {auth}");
    }
}

#[tokio::test]
async fn a_browser_that_opens_a_protected_page_writes_no_rejection_for_it() {
    let get = |path: &str, header: &str| {
        let mut event = calling(&Value::Null, &[("authorization", header)]);
        event["rawPath"] = path.into();
        event["requestContext"]["http"] = json!({"method": "GET", "path": path});
        let fields = event.as_object_mut().unwrap();
        fields.remove("body");
        if header.is_empty() {
            let headers = fields["headers"].as_object_mut().unwrap();
            headers.remove("authorization");
        }
        (event, LONG)
    };
    let events = [
        get("/", ""),
        get("/explorer.json", ""),
        get("/", "Bearer wrong"),
        get("/", &format!("Bearer {KEY}")),
    ];
    let environment = [
        ("TOOLS_EXPLORER", "yes"),
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_API_KEY", KEY),
    ];
    let (reports, printed) = invoke_on(&mut toolbox(), &events, &environment).await;
    let statuses: Vec<_> = reports.iter().map(|it| &it.1["statusCode"]).collect();
    assert_eq!(statuses, [401, 401, 401, 200]);
    let lines = printed
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let rejected: Vec<_> = lines
        .filter(|line| line["outcome"] == "rejection")
        .map(|line| {
            assert_eq!(
                (&line["message"], &line["reason"]),
                (&json!("explorer"), &json!("unauthenticated"))
            );
            line["requestId"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(rejected, [request_id(1), request_id(2)]);
}
