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

/// All pages, and three with one fault each, which the check must report.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's axe-core and Chromium; run tests/all"]
async fn every_page_is_readable_on_telephones_and_desktops_in_light_and_dark() {
    let starts = states::starts(&acme()).await;
    let (.., usual) = &starts[0];
    let replaced = |from: &str, to: &str| {
        assert!(usual.body.contains(from), "{from}");
        usual.body.replace(from, to)
    };
    let style = |added: &str| replaced("</style>", &format!("{added}</style>"));
    let image = replaced("</main>", "<img src=\"/image\" alt=\"\"></main>");
    let faults = [
        ("faulty-wide", "width: ", style("li { width: 900px }")),
        (
            "faulty-pale",
            "axe: color-contrast",
            style(":root { --soft: #777 }"),
        ),
        ("faulty-image", "request: ", image),
    ];
    let mut pages = HashMap::new();
    for (name, _, body) in &faults {
        let mut headers = usual.headers.clone();
        for name in ["set-cookie", "content-length", "content-security-policy"] {
            headers.remove(name);
        }
        pages.insert((*name).to_owned(), (200, headers, body.clone()));
    }
    #[cfg(feature = "sign-in")]
    pages.extend(crate::sign_in::pages().await);
    for (name, status, _, page) in states::results(&acme()).await.into_iter().chain(starts) {
        let mut headers = page.headers;
        // Chromium accepts this cookie over TLS only.
        headers.remove("set-cookie");
        pages.insert(name.to_owned(), (status, headers, page.body));
    }
    let views = problems_of("authorization", pages).await;
    let is_faulty = |view: &str| view.starts_with("faulty-");
    let problems: Vec<_> = views
        .iter()
        .filter(|(view, it)| !is_faulty(view) && !it.is_empty())
        .collect();
    assert!(problems.is_empty(), "{problems:#?}");
    for (name, expected, _) in faults {
        let mut of_page = views.iter().filter(|(view, _)| view.starts_with(name));
        let is_reported = of_page.any(|(_, it)| it.iter().any(|it| it.starts_with(expected)));
        assert!(is_reported, "{name}: {views:#?}");
    }
}
