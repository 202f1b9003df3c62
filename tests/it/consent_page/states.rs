//! Every page, as a server shows it, with a provider that only issues tokens.

use std::time::Duration;

use lambda_tools::{ApiKeys, Auth};
use serde_json::{Value, json};
use test_support::issuer::Issuer;

use super::{
    local::{mail_at, oauth_at},
    *,
};

/// Returns the provider's response, which the code chooses.
fn tokens(body: &str) -> Value {
    let granted = [("code=all", "mail.read offline"), ("code=less", "offline")];
    match granted.iter().find(|(code, _)| body.contains(code)) {
        Some((_, scopes)) => json!({"access_token": "t", "token_type": "Bearer", "scope": scopes}),
        None => json!({"error": "invalid_grant"}),
    }
}

/// A page's name, its expected status and title, and the page.
pub(super) type Shown = (&'static str, u16, String, Page);

/// The page of each outcome, with its status and its title.
const RESULTS: [(&str, u16, &str); 8] = [
    ("done", 200, "Done"),
    ("not-allowed", 200, "Not allowed"),
    ("less", 200, "Not everything was allowed"),
    ("expired", 404, "This link has expired"),
    ("unusable", 400, "This page cannot be used in this browser"),
    ("in-use", 409, "This link is being used"),
    ("failed", 200, "It did not work"),
    ("later", 503, "Not available at the moment"),
];

fn result(name: &str, page: Page) -> Shown {
    let result = RESULTS.iter().find(|it| it.0 == name);
    let (name, status, title) = *result.unwrap();
    (name, status, title.to_owned(), page)
}

/// Returns from the provider; checks what becomes of the challenge, and returns the page.
async fn finished(server: &Local, name: &str, parameters: &str, status: &str) -> Shown {
    let id = server.challenge(name).await;
    let page = server.finish(&id, parameters).await;
    assert_eq!(server.status(&id).await, status, "{name}");
    result(name, page)
}

/// Returns the page of each outcome.
pub(super) async fn results(info: &ServerInfo) -> Vec<Shown> {
    let issuer = Issuer::start().await;
    issuer.change(|it| it.tokens = tokens);
    let with = |oauth: OAuth| {
        Local::with(Setup {
            info: info.clone(),
            oauth,
            ..Setup::default()
        })
    };
    let server = with(oauth_at(&issuer));
    let slow = server.challenge("slow").await;
    let issuing = issuer.issuing.lock().await;
    let running = tokio::spawn({
        let (server, slow) = (server.clone(), slow.clone());
        async move { server.finish(&slow, "code=all").await.status }
    });
    while issuer.behaviour().token_requests == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let in_use = server.open(&slow).await;
    running.abort();
    drop(issuing);
    let other = server.challenge("other").await;
    let unusable = server.submit(&other, None, "form=").await;
    assert_eq!(server.status(&other).await, "pending");
    let expired = server.open(&"0".repeat(64)).await;
    let without_secret = Provider::new("mail", "id", "MISSING", AUTHORIZE, AUTHORIZE);
    let without_secret = with(OAuth::with([without_secret]));
    vec![
        finished(&server, "done", "code=all", "completed").await,
        finished(&server, "not-allowed", "error=access_denied", "failed").await,
        finished(&server, "less", "code=less", "failed").await,
        finished(&server, "failed", "code=unknown", "failed").await,
        finished(&without_secret, "later", "code=all", "pending").await,
        result("expired", expired),
        result("unusable", unusable),
        result("in-use", in_use),
    ]
}

/// Returns the page with the button, as most users see it, and its extremes.
pub(super) async fn starts(info: &ServerInfo) -> Vec<Shown> {
    let scope = |name: &str| format!("https://www.googleapis.com/auth/{name}");
    let scopes = "gmail.readonly calendar.events photoslibrary.appendonly".split(' ');
    let usual = Setup {
        auth: ApiKeys::with_ids(["PARTNER"]).into(),
        info: info.clone(),
        oauth: OAuth::with([Provider::google("id", "SECRET")]),
        needs: ("google", scopes.map(scope).collect()),
    };
    let plain = Setup {
        auth: Auth::none(),
        ..Setup::default()
    };
    let (server, provider) = ("Assistant".repeat(20), "Provider".repeat(20));
    let scope = |number| format!("mail.{number}.{}", "x".repeat(80));
    let mail = mail_at("https://provider.example/token");
    let mail = mail.title(provider.clone());
    let long = Setup {
        info: ServerInfo::new(server.clone(), "1.0.0")
            .support_url(format!("https://acme.example/{}", "help".repeat(60))),
        oauth: OAuth::with([mail.describe_scope("offline", "Permission".repeat(20))]),
        needs: ("mail", (0..100).map(scope).collect()),
        ..Setup::default()
    };
    let title =
        |server: &str, provider: &str| format!("Allow {server} to use your {provider} account?");
    let mut all = Vec::new();
    let (start, long_user) = ("Acme Assistant", "u".repeat(250));
    for (name, title, setup, user) in [
        ("start", title(start, "Google"), usual, "alice@a.example"),
        ("start-plain", title("Tools", "mail"), plain, "user-1"),
        ("start-long", title(&server, &provider), long, &long_user),
    ] {
        let server = Local::with(setup);
        let id = server.challenge(user).await;
        all.push((name, 200, title, server.open(&id).await));
    }
    all
}
