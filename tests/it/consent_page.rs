//! The consent page: the flow starts only with its button. These tests need no provider.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request},
};
use lambda_tools::{Auth, Failure, OAuth, Tool, Toolkit, oauth::Provider, secrets::Secrets};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;

use test_support::openid::form_in;

use crate::support::server;

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

const AUTHORIZE: &str = "https://provider.example/authorize";

struct Page {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Page {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// The part of the cookie that a browser sends back.
    fn cookie(&self) -> &str {
        self.header("set-cookie").split(';').next().unwrap()
    }

    #[track_caller]
    fn form(&self) -> &str {
        form_in(&self.body).unwrap_or_else(|| panic!("{}", self.body))
    }
}

/// A server without a socket.
struct Local(Router);

impl Local {
    fn new(auth: Auth) -> Self {
        /// Reads emails.
        #[derive(Deserialize, JsonSchema)]
        struct Read {}

        async fn read(_: Read) -> Result<(), Failure> {
            Ok(())
        }

        let tool = Tool::new("Mail.Read@1.0.0", read).authorization("mail", ["mail.read"]);
        let provider = Provider::new("mail", "id", "SECRET", AUTHORIZE, AUTHORIZE)
            .scope("offline")
            .parameter("audience", "mails");
        let secrets = [
            ("TOOLS_OAUTH_KEY", KEY),
            ("PARTNER", "key-of-a-partner"),
            ("GUEST", "key-of-a-guest"),
        ];
        let server = server(Toolkit::new([tool]).unwrap())
            .auth(auth)
            .secrets(Secrets::fixed(secrets))
            .public_url("https://tools.example")
            .oauth(OAuth::with([provider]));
        Self(server.into_router().unwrap())
    }

    fn with_two_callers() -> Self {
        Self::new(Auth::api_key_ids(["PARTNER", "GUEST"]))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Page {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Page {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Makes a call; returns the id of its challenge.
    async fn challenge(&self, key: &str, user: &str) -> String {
        let body = json!({"tool_id": "Mail.Read", "context": {"user_id": user}}).to_string();
        let headers = [("oxp-api-key", key)];
        let response = self.send(Method::POST, "/tools/call", &headers, body).await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        let challenge = &body["missing_requirements"]["authorization"][0];
        let id = challenge["id"].as_str();
        id.unwrap_or_else(|| panic!("{body}")).to_owned()
    }

    async fn status(&self, id: &str) -> String {
        let path = format!("/authorization/challenges/{id}");
        let response = self.send(Method::GET, &path, &[], "").await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        body["status"].as_str().unwrap().to_owned()
    }

    async fn open(&self, id: &str) -> Page {
        let path = format!("/authorization/challenges/{id}/start");
        self.send(Method::GET, &path, &[], "").await
    }

    async fn submit(&self, id: &str, cookie: Option<&str>, body: &str) -> Page {
        let path = format!("/authorization/challenges/{id}/start");
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let cookie = cookie.map(|cookie| ("cookie", cookie));
        let headers: Vec<_> = cookie.into_iter().chain([kind]).collect();
        let body = body.to_owned();
        self.send(Method::POST, &path, &headers, body).await
    }
}

#[tokio::test]
async fn the_page_shows_the_caller_the_user_the_provider_and_the_scopes() {
    let server = Local::with_two_callers();
    let user = "<script>alert('x')</script>&\"";
    let id = server.challenge("key-of-a-partner", user).await;
    let page = server.open(&id).await;
    assert_eq!(page.status, 200);
    for part in [
        "<bdi>key PARTNER</bdi>",
        "<bdi>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;</bdi>",
        "<strong>mail</strong>",
        "<code>mail.read</code>",
        "<code>offline</code>",
        "Continue to mail</button>",
    ] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(!page.body.contains("<script"), "{}", page.body);
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'none'; base-uri 'none'; form-action 'self' https:; \
             frame-ancestors 'none'",
        ),
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), value);
    }
    let cookie = page.header("set-cookie");
    assert!(cookie.starts_with("__Host-authorization-"), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );

    let server = Local::new(Auth::none());
    let id = server.challenge("", "user-1").await;
    let page = server.open(&id).await.body;
    assert!(page.contains("An anonymous caller"), "{page}");
}

#[tokio::test]
async fn the_button_leads_to_the_provider() {
    let server = Local::with_two_callers();
    let id = server.challenge("key-of-a-partner", "alice").await;
    let page = server.open(&id).await;
    let body = format!("form={}", page.form());
    // The second time, the user has gone back and pressed the button again.
    for _ in 0..2 {
        let redirect = server.submit(&id, Some(page.cookie()), &body).await;
        assert_eq!((redirect.status, redirect.cookie()), (303, page.cookie()));
        let location = redirect.header("location");
        assert!(location.starts_with(AUTHORIZE), "{location}");
        assert!(location.contains("&prompt=consent"), "{location}");
        assert_eq!(redirect.header("referrer-policy"), "no-referrer");
    }
    assert_eq!(server.status(&id).await, "pending");
}

#[tokio::test]
async fn the_flow_does_not_start_without_the_button() {
    let server = Local::with_two_callers();
    let id = server.challenge("key-of-a-partner", "alice").await;
    let other = server.challenge("key-of-a-partner", "bob").await;
    let (page, same_page_elsewhere, other_page) = (
        server.open(&id).await,
        server.open(&id).await,
        server.open(&other).await,
    );
    let cookie = page.cookie();
    assert_ne!(cookie, same_page_elsewhere.cookie());
    let field = |form: &str| format!("form={form}");
    let own = field(page.form());
    let value = cookie.split_once('=').unwrap().1;
    let other_name = other_page.cookie().split_once('=').unwrap().0;
    let padded = format!("{own}&padding={}", "x".repeat(8 * 1024));
    let large = format!("{own}{}", "x".repeat(8 * 1024));
    for (what, id, cookie, body) in [
        // A form of another site: browsers do not send it with a Lax cookie.
        ("no cookie", &id, None, &*own),
        ("no field", &id, Some(cookie), ""),
        ("an empty field", &id, Some(cookie), "form="),
        (
            "another name",
            &id,
            Some(cookie),
            &own.replace("form", "field"),
        ),
        ("twice", &id, Some(cookie), &format!("{own}&{own}")),
        ("cut off", &id, Some(cookie), &own[..own.len() - 1]),
        (
            "another challenge's field",
            &id,
            Some(cookie),
            &field(other_page.form()),
        ),
        (
            "another browser's field",
            &id,
            Some(cookie),
            &field(same_page_elsewhere.form()),
        ),
        (
            "another browser's cookie",
            &id,
            Some(same_page_elsewhere.cookie()),
            &own,
        ),
        (
            "another challenge's page",
            &id,
            Some(other_page.cookie()),
            &field(other_page.form()),
        ),
        (
            "another challenge",
            &other,
            Some(&*format!("{other_name}={value}")),
            &own,
        ),
        ("more than a form", &id, Some(cookie), &padded),
        ("a large field", &id, Some(cookie), &large),
        ("no text", &id, Some(cookie), "form=%ff%fe"),
    ] {
        let rejection = server.submit(id, cookie, body).await;
        assert_eq!(rejection.status, 400, "{what}");
        assert!(
            rejection.body.contains("cannot be used in this browser"),
            "{what}"
        );
        assert!(rejection.headers.get("location").is_none(), "{what}");
        assert!(rejection.headers.get("set-cookie").is_none(), "{what}");
    }
    // Fetching the page, as a link preview does, does not start the flow either.
    for method in [Method::GET, Method::HEAD] {
        let path = format!("/authorization/challenges/{id}/start?{own}");
        let headers = [("cookie", cookie)];
        let page = server.send(method, &path, &headers, own.clone()).await;
        assert_eq!(page.status, 200);
        assert!(page.headers.get("location").is_none());
    }
    let redirect = server.submit(&id, Some(cookie), &own).await;
    assert_eq!(redirect.status, 303);
}

#[tokio::test]
async fn callers_do_not_share_challenges() {
    let server = Local::with_two_callers();
    let partners = server.challenge("key-of-a-partner", "alice").await;
    let guests = server.challenge("key-of-a-guest", "alice").await;
    assert_ne!(partners[..32], guests[..32]);
    assert!(server.open(&guests).await.body.contains("key GUEST"));
    assert!(server.open(&partners).await.body.contains("key PARTNER"));
    let again = server.challenge("key-of-a-partner", "alice").await;
    assert_eq!(again, partners);
}
