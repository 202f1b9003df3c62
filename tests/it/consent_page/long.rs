//! The look of the pages, in Chromium, which gets each page with the headers and the body that the server
//! has sent. `.ci/long` installs Chromium, and runs this test.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Response, Uri},
};
use test_support::{Served, chromium, repository};

use super::{acme, states};

pub(crate) type Recorded = HashMap<String, (u16, HeaderMap, String)>;

/// Serves the pages at their names.
async fn serve(pages: Recorded) -> Served {
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
    Served::start(router).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's axe-core and Chromium; run .ci/long"]
async fn every_page_is_readable_on_telephones_and_desktops_in_light_and_dark() {
    let mut shown = states::results(&acme()).await;
    shown.extend(states::starts(&acme()).await);
    let pages = shown.into_iter().map(|(name, status, _, page)| {
        let mut headers = page.headers;
        // Chromium accepts this cookie over TLS only.
        headers.remove("set-cookie");
        (name.to_owned(), (status, headers, page.body))
    });
    let mut pages: Recorded = pages.collect();
    pages.extend(crate::sign_in::pages().await);
    let names: Vec<_> = pages.keys().cloned().collect();
    let served = serve(pages).await;
    let artifacts = repository("target/artifacts");
    std::fs::create_dir_all(&artifacts).unwrap();
    let mut arguments = vec![artifacts.join("authorization").display().to_string()];
    arguments.extend(names.iter().map(|it| format!("{it}={}/{it}", served.url)));
    let views = chromium("authorization_pages.mjs", &arguments).await;
    let views = views.as_array().unwrap();
    assert_eq!(views.len(), 4 * names.len(), "two schemes, two widths");
    assert_eq!(views.len(), 60);
    let is_faulty = |problems: &serde_json::Value| *problems != serde_json::json!([]);
    let faulty: Vec<_> = views
        .iter()
        .filter(|it| is_faulty(&it["problems"]))
        .collect();
    assert!(faulty.is_empty(), "{faulty:#?}");
}
