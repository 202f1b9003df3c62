//! The explorer's page, served by the compiled programs. `long/explorer.rs` opens it in a browser.

use serde_json::Value;
use test_support::{
    Running,
    lambda::{LONG, event, invoke_on, request_id},
    marks::Scratch,
};

use crate::support::toolbox;

const KEY: &str = "marked-key-of-a-partner";

#[tokio::test]
async fn the_page_is_announced_and_served_unless_it_is_turned_off() {
    for (setting, status) in [("", 200), ("yes", 200), ("no", 404)] {
        let running = Running::start(toolbox().env("PORT", "0").env("TOOLS_EXPLORER", setting));
        let url = running.url_after("Serving tools on");
        let next = running.line_with("", 5);
        let announced = format!("Explore and try the tools: {url}/");
        assert_eq!(next == announced, status == 200, "{next}");
        let response = reqwest::get(format!("{url}/")).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{setting}");
    }
}

#[tokio::test]
async fn the_page_is_not_recorded() {
    let folder = Scratch::new("explored");
    let (running, url) = Running::serving(toolbox().env("RECORD_EVENTS", &folder.0));
    for path in ["/", "/explorer.json", "/tools"] {
        reqwest::get(format!("{url}{path}")).await.unwrap();
    }
    running.line_with("tools.json", 5);
    let files = std::fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(files, 2, "the list of tools and its expected response");
}

/// Where it is protected, a browser that opens it is no caller whom the log reports as rejected.
#[tokio::test]
async fn on_lambda_the_page_has_to_be_turned_on() {
    let get = |path: &str, credentials: &str| {
        let mut event = event("sources/http-api");
        event["rawPath"] = path.into();
        event["requestContext"]["http"]["path"] = path.into();
        event["requestContext"]["http"]["method"] = "GET".into();
        event["body"] = Value::Null;
        if !credentials.is_empty() {
            event["headers"]["authorization"] = credentials.into();
        }
        (event, LONG)
    };
    let events = [
        get("/", ""),
        get("/explorer.json", ""),
        get("/", "Bearer wrong"),
        get("/", &format!("Bearer {KEY}")),
    ];
    for (setting, auth, statuses, rejected) in [
        ("", "none", [404; 4], &[][..]),
        ("yes", "none", [200; 4], &[]),
        ("yes", "api-key", [401, 401, 401, 200], &[1, 2]),
    ] {
        let environment = [
            ("TOOLS_EXPLORER", setting),
            ("TOOLS_AUTH", auth),
            ("TOOLS_API_KEY", KEY),
        ];
        let (reports, lines) = invoke_on(&mut toolbox(), &events, &environment).await;
        for ((_, answer, _), status) in reports.iter().zip(statuses) {
            assert_eq!(answer["statusCode"], status, "{setting} {auth}");
        }
        let page = reports[0].1["body"].as_str().unwrap();
        assert_eq!(page.starts_with("<!DOCTYPE html>"), setting == "yes");
        let lines = lines.iter().map(|it| serde_json::from_str(it).unwrap());
        let unauthenticated = lines.filter(|it: &Value| it["reason"] == "unauthenticated");
        let unauthenticated: Vec<_> = unauthenticated
            .map(|it| it["requestId"].as_str().unwrap().to_owned())
            .collect();
        let rejected: Vec<_> = rejected.iter().map(|it| request_id(*it)).collect();
        assert_eq!(unauthenticated, rejected, "{setting} {auth}");
    }
}
