//! The pages in Chromium: their look, and the faults that the check must report.
//!
//! Chromium gets each page with the headers and the body that the server has sent.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Response, Uri},
};
use serde_json::Value;
use test_support::{Served, chromium, repository};

use super::{acme, states};

pub(crate) type Recorded = HashMap<String, (u16, HeaderMap, String)>;

/// Serves the pages at their names, and returns the problems of each view, after checking that its
/// screenshot is there.
pub(crate) async fn problems_of(prefix: &str, pages: Recorded) -> Vec<(String, Vec<String>)> {
    let names: Vec<_> = pages.keys().cloned().collect();
    let pages = Arc::new(pages);
    let router = Router::new().fallback(async move |uri: Uri| {
        let page = pages.get(uri.path().trim_start_matches('/'));
        let (status, headers, body) =
            page.cloned()
                .unwrap_or((404, HeaderMap::new(), String::new()));
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status.try_into().unwrap();
        *response.headers_mut() = headers;
        response
    });
    let served = Served::start(router).await;
    let arguments = names.iter().map(|it| format!("{it}={}/{it}", served.url));
    let mut arguments: Vec<_> = arguments.collect();
    arguments.sort();
    let artifacts = repository("target/artifacts");
    std::fs::create_dir_all(&artifacts).unwrap();
    let out = artifacts.join(prefix);
    arguments.insert(0, out.display().to_string());
    let printed = chromium("authorization_pages.mjs", &arguments).await;
    let views = printed.as_array().unwrap();
    assert_eq!(views.len(), 4 * names.len(), "two schemes, two widths");
    let view = |view: &Value| {
        let name = format!(
            "{}.{}.{}",
            view["name"].as_str().unwrap(),
            view["scheme"].as_str().unwrap(),
            view["width"]
        );
        let screenshot = artifacts.join(format!("{prefix}.{name}.png"));
        assert!(std::fs::metadata(screenshot).unwrap().len() > 1000);
        let problems = serde_json::from_value(view["problems"].clone()).unwrap();
        (name, problems)
    };
    views.iter().map(view).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's axe-core and Chromium; run tests/all"]
async fn every_page_is_readable_on_telephones_and_desktops_in_light_and_dark() {
    let mut shown = states::results(&acme()).await;
    shown.extend(states::starts(&acme()).await);
    let pages = shown.into_iter().map(|(name, status, _, page)| {
        let mut headers = page.headers;
        // Chromium accepts this cookie over TLS only.
        headers.remove("set-cookie");
        (name.to_owned(), (status, headers, page.body))
    });
    let views = problems_of("authorization", pages.collect()).await;
    assert_eq!(views.len(), 44);
    let faulty: Vec<_> = views.iter().filter(|(_, it)| !it.is_empty()).collect();
    assert!(faulty.is_empty(), "{faulty:#?}");
}

/// The check itself: each page has one fault.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's axe-core and Chromium; run tests/all"]
async fn chromium_reports_each_fault_of_a_page() {
    let (.., page) = states::starts(&acme()).await.remove(0);
    let replaced = |from: &str, to: &str| {
        assert!(page.body.contains(from), "{from}");
        page.body.replace(from, to)
    };
    let style = |added: &str| replaced("</style>", &format!("{added}</style>"));
    let image = replaced("</main>", "<img src=\"/image\" alt=\"\"></main>");
    let faults = [
        ("wide", "width: ", style("li { width: 900px }")),
        (
            "pale",
            "axe: color-contrast",
            style(":root { --soft: #777 }"),
        ),
        ("loads", "request: ", image),
    ];
    let pages = faults.iter().map(|(name, _, body)| {
        let mut headers = page.headers.clone();
        for name in ["set-cookie", "content-length", "content-security-policy"] {
            headers.remove(name);
        }
        ((*name).to_owned(), (200, headers, body.clone()))
    });
    let views = problems_of("faulty", pages.collect()).await;
    for (name, expected, _) in faults {
        let mut of_page = views.iter().filter(|(view, _)| view.starts_with(name));
        let is_reported = of_page.any(|(_, it)| it.iter().any(|it| it.starts_with(expected)));
        assert!(is_reported, "{name}: {views:#?}");
    }
}
