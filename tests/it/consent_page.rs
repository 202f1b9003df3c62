//! The page that asks, and that nothing starts without its button. Takes no provider.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request},
};
use lambda_tools::{
    Auth, Failure, OAuth, Server, Tool, Toolkit, oauth::Provider, secrets::Secrets,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;

use test_support::openid::form_in;

const KEY: &str = "a-key-of-this-server-0123456789abcdef";

const AUTHORIZE: &str = "https://provider.example/authorize";

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
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

/// A server of two callers, without a socket.
struct Local(Router);

impl Local {
    fn new(auth: Auth) -> Self {
        /// Reads mails.
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
        let authorization = OAuth::with([provider]).public_url("https://tools.example");
        let server = Server::new(Toolkit::new([tool]).unwrap())
            .auth(auth)
            .secrets(Secrets::fixed(secrets))
            .oauth(authorization);
        Self(server.into_router().unwrap())
    }

    fn of_two_callers() -> Self {
        Self::new(Auth::api_key_ids(["PARTNER", "GUEST"]))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let answer = self.0.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// The id of the challenge that a call is answered with.
    async fn challenge(&self, key: &str, user: &str) -> String {
        let body = json!({"tool_id": "Mail.Read", "context": {"user_id": user}}).to_string();
        let headers = [("oxp-api-key", key)];
        let answer = self.send(Method::POST, "/tools/call", &headers, body).await;
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        let challenge = &body["missing_requirements"]["authorization"][0];
        let id = challenge["id"].as_str();
        id.unwrap_or_else(|| panic!("{body}")).to_owned()
    }

    async fn status(&self, id: &str) -> String {
        let path = format!("/authorization/challenges/{id}");
        let answer = self.send(Method::GET, &path, &[], "").await;
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        body["status"].as_str().unwrap().to_owned()
    }

    async fn ask(&self, id: &str) -> Answer {
        let path = format!("/authorization/challenges/{id}/start");
        self.send(Method::GET, &path, &[], "").await
    }

    async fn press(&self, id: &str, cookie: Option<&str>, body: &str) -> Answer {
        let path = format!("/authorization/challenges/{id}/start");
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let cookie = cookie.map(|cookie| ("cookie", cookie));
        let headers: Vec<_> = cookie.into_iter().chain([kind]).collect();
        let body = body.to_owned();
        self.send(Method::POST, &path, &headers, body).await
    }
}

#[tokio::test]
async fn it_says_who_asks_for_what_and_for_whom() {
    let server = Local::of_two_callers();
    let user = "<script>alert('x')</script>&\"";
    let id = server.challenge("key-of-a-partner", user).await;
    let asked = server.ask(&id).await;
    assert_eq!(asked.status, 200);
    for said in [
        "<bdi>key PARTNER</bdi>",
        "<bdi>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;</bdi>",
        "<strong>mail</strong>",
        "<code>mail.read</code>",
        "<code>offline</code>",
        "Continue to mail</button>",
    ] {
        assert!(asked.body.contains(said), "{said}: {}", asked.body);
    }
    assert!(!asked.body.contains("<script"), "{}", asked.body);
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
        assert_eq!(asked.header(name), value);
    }
    let cookie = asked.header("set-cookie");
    assert!(cookie.starts_with("__Host-authorization-"), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );

    let server = Local::new(Auth::none());
    let id = server.challenge("", "user-1").await;
    let asked = server.ask(&id).await.body;
    assert!(
        asked.contains("Somebody who did not have to say"),
        "{asked}"
    );
}

#[tokio::test]
async fn its_button_leads_to_the_provider() {
    let server = Local::of_two_callers();
    let id = server.challenge("key-of-a-partner", "alice").await;
    let asked = server.ask(&id).await;
    let body = format!("form={}", asked.form());
    // Pressed again after going back, it works again.
    for _ in 0..2 {
        let sent = server.press(&id, Some(asked.cookie()), &body).await;
        assert_eq!((sent.status, sent.cookie()), (303, asked.cookie()));
        let location = sent.header("location");
        assert!(location.starts_with(AUTHORIZE), "{location}");
        assert!(location.contains("&prompt=consent"), "{location}");
        assert_eq!(sent.header("referrer-policy"), "no-referrer");
    }
    assert_eq!(server.status(&id).await, "pending");
}

#[tokio::test]
async fn nothing_starts_without_it() {
    let server = Local::of_two_callers();
    let id = server.challenge("key-of-a-partner", "alice").await;
    let other = server.challenge("key-of-a-partner", "bob").await;
    let (alices, bobs, others) = (
        server.ask(&id).await,
        server.ask(&id).await,
        server.ask(&other).await,
    );
    let cookie = alices.cookie();
    assert_ne!(cookie, bobs.cookie());
    let field = |form: &str| format!("form={form}");
    let own = field(alices.form());
    let value = cookie.split_once('=').unwrap().1;
    let others_name = others.cookie().split_once('=').unwrap().0;
    let padded = format!("{own}&padding={}", "x".repeat(8 * 1024));
    let large = format!("{own}{}", "x".repeat(8 * 1024));
    for (what, id, cookie, body) in [
        // As a form of another site is sent: browsers leave out a cookie that is Lax.
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
            &field(others.form()),
        ),
        (
            "another browser's field",
            &id,
            Some(cookie),
            &field(bobs.form()),
        ),
        ("another browser's cookie", &id, Some(bobs.cookie()), &own),
        (
            "another challenge's page",
            &id,
            Some(others.cookie()),
            &field(others.form()),
        ),
        (
            "another challenge",
            &other,
            Some(&*format!("{others_name}={value}")),
            &own,
        ),
        ("more than a form", &id, Some(cookie), &padded),
        ("a large field", &id, Some(cookie), &large),
        ("no text", &id, Some(cookie), "form=%ff%fe"),
    ] {
        let sent = server.press(id, cookie, body).await;
        assert_eq!(sent.status, 400, "{what}");
        assert!(
            sent.body.contains("does not belong to this browser"),
            "{what}"
        );
        assert!(sent.headers.get("location").is_none(), "{what}");
        assert!(sent.headers.get("set-cookie").is_none(), "{what}");
    }
    // Nor by looking at it, as previews of links do.
    for method in [Method::GET, Method::HEAD] {
        let path = format!("/authorization/challenges/{id}/start?{own}");
        let headers = [("cookie", cookie)];
        let looked = server.send(method, &path, &headers, own.clone()).await;
        assert_eq!(looked.status, 200);
        assert!(looked.headers.get("location").is_none());
    }
    let sent = server.press(&id, Some(cookie), &own).await;
    assert_eq!(sent.status, 303);
}

#[tokio::test]
async fn callers_see_nothing_of_each_others_challenges() {
    let server = Local::of_two_callers();
    let partners = server.challenge("key-of-a-partner", "alice").await;
    let guests = server.challenge("key-of-a-guest", "alice").await;
    assert_ne!(partners[..32], guests[..32]);
    assert!(server.ask(&guests).await.body.contains("key GUEST"));
    assert!(server.ask(&partners).await.body.contains("key PARTNER"));
    let again = server.challenge("key-of-a-partner", "alice").await;
    assert_eq!(again, partners);
}
