//! Every page, as a server shows it, with a provider that only issues tokens.

use std::time::Duration;

use lambda_tools::{ApiKeys, Auth, ServerInfo, oauth::Provider};
use serde_json::{Value, json};
use test_support::issuer::Issuer;

use super::local::{Local, Page, Setup, mail_at};

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

/// Returns the page of each outcome.
pub(super) async fn results(info: &ServerInfo) -> Vec<Shown> {
    let issuer = Issuer::start().await;
    issuer.change(|it| it.tokens = tokens);
    let token_url = format!("{}/token", issuer.url);
    let setup = |has_secret| Setup {
        info: info.clone(),
        provider: mail_at(&token_url),
        has_secret,
        ..Setup::default()
    };
    let server = Local::with(setup(true));
    let challenge = async |user: &str| server.challenge("key-of-a-partner", user).await;
    let finish = async |user: &str, parameters: &str| {
        server.finish(&challenge(user).await, parameters).await
    };
    let slow = challenge("dora").await;
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
    let other = challenge("eve").await;
    let without_secret = Local::with(setup(false));
    let id = without_secret.challenge("key-of-a-partner", "frank").await;
    let shown = |name, status, title: &str, page| (name, status, title.to_owned(), page);
    let unusable = server.submit(&other, None, "form=").await;
    let unavailable = without_secret.finish(&id, "code=all").await;
    let done = finish("alice", "code=all").await;
    let not_allowed = finish("bob", "error=access_denied").await;
    let insufficient = finish("carol", "code=less").await;
    let failed = finish("grace", "code=unknown").await;
    let expired = server.open(&"0".repeat(64)).await;
    let of_other = "This page cannot be used in this browser";
    vec![
        shown("done", 200, "Done", done),
        shown("not-allowed", 200, "Not allowed", not_allowed),
        shown("less", 200, "Not everything was allowed", insufficient),
        shown("expired", 404, "This link has expired", expired),
        shown("unusable", 400, of_other, unusable),
        shown("in-use", 409, "This link is being used", in_use),
        shown("failed", 200, "It did not work", failed),
        shown("later", 503, "Not available at the moment", unavailable),
    ]
}

/// Returns the page with the button, as most users see it, and its extremes.
pub(super) async fn starts(info: &ServerInfo) -> Vec<Shown> {
    let title = "Allow Acme Assistant to use your Google account?".to_owned();
    let usual = Setup {
        auth: ApiKeys::with_ids(["PARTNER"]).into(),
        info: info.clone(),
        provider: Provider::google("id", "SECRET"),
        needs: (
            "google",
            vec![
                "https://www.googleapis.com/auth/gmail.readonly".to_owned(),
                "https://www.googleapis.com/auth/calendar.events".to_owned(),
                "https://www.googleapis.com/auth/photoslibrary.appendonly".to_owned(),
            ],
        ),
        ..Setup::default()
    };
    let plain = Setup {
        auth: Auth::none(),
        ..Setup::default()
    };
    let long = Setup {
        info: ServerInfo::new("Assistant".repeat(20), "1.0.0")
            .support_url(format!("https://acme.example/{}", "help".repeat(60))),
        provider: mail_at("https://provider.example/token")
            .title("Provider".repeat(20))
            .describe_scope("offline", "Permission".repeat(20)),
        needs: (
            "mail",
            (0..100)
                .map(|n| format!("mail.{n}.{}", "x".repeat(80)))
                .collect(),
        ),
        ..Setup::default()
    };
    let long_title = format!(
        "Allow {} to use your {} account?",
        "Assistant".repeat(20),
        "Provider".repeat(20)
    );
    let plain_title = "Allow Tools to use your mail account?".to_owned();
    let usual = opened(usual, "alice@example.com").await;
    let plain = opened(plain, "user-1").await;
    let long = opened(long, &"u".repeat(250)).await;
    vec![
        ("start", 200, title, usual),
        ("start-plain", 200, plain_title, plain),
        ("start-long", 200, long_title, long),
    ]
}

async fn opened(setup: Setup, user: &str) -> Page {
    let server = Local::with(setup);
    let id = server.challenge("key-of-a-partner", user).await;
    server.open(&id).await
}
