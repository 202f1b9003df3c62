//! Access tokens of identity providers, checked with the keys that the issuer publishes.

mod allowed;
mod attacks;
mod gateway;
mod keys;
mod scopes;

use lambda_tools::{
    Auth, Caller, Context, Failure, Jwt, Oidc, Server, Tool, Toolkit,
    secrets::Secrets,
    testing::{ExpectedResponse, LambdaFunction},
};
use serde_json::{Value, json};
use test_support::issuer::{
    ALGORITHMS, Algorithm, Issuer, NOW, SigningKey, URL, claims, sign_with_secret,
};

use crate::support::{self, Nothing, function};

const SECRET: &str = "a-signing-secret-0123456789abcdefgh";
const OTHER: &str = "another-signing-secret-0123456789abcdefgh";

async fn who_am_i(_: Nothing, cx: Context) -> Result<Value, Failure> {
    let client_id = match cx.caller() {
        Caller::AccessToken(token) => token.client_id.clone(),
        _ => None,
    };
    Ok(json!({
        "caller": cx.caller().to_string(),
        "namespace": cx.caller().namespace(),
        "user": cx.user_id(),
        "client": client_id,
        "scopes": cx.caller().scopes(),
        "groups": cx.caller().groups(),
    }))
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("Who.AmI@1.0.0", who_am_i),
        Tool::new("Mail.Read@1.0.0", who_am_i).scope("mail.read"),
        Tool::new("Mail.Send@1.0.0", who_am_i)
            .scope("mail.read")
            .scope("mail.send"),
    ]
}

fn server(auth: impl Into<Auth>) -> Server {
    let secrets = Secrets::fixed([
        ("KEY", "a-key-0123456789"),
        ("SIGNING", SECRET),
        ("OTHER", OTHER),
        ("SAME", SECRET),
    ]);
    support::server(Toolkit::new(tools()).unwrap())
        .auth(auth)
        .secrets(secrets)
}

fn served(auth: impl Into<Auth>) -> LambdaFunction {
    function(server(auth))
}

/// Returns an event from a function URL.
fn event(method: &str, path: &str, token: Option<&str>, body: &Value) -> Value {
    let body = body.to_string();
    let body = if body == "null" { "" } else { &*body };
    let mut event: Value = serde_json::from_str(&support::event(method, path, body)).unwrap();
    event["requestContext"]["domainName"] = "tools.example".into();
    if let Some(token) = token {
        event["headers"]["authorization"] = format!("Bearer {token}").into();
    }
    event
}

async fn respond(function: &LambdaFunction, event: &Value) -> ExpectedResponse {
    function.respond(&event.to_string()).await.unwrap()
}

async fn get(function: &LambdaFunction, path: &str) -> ExpectedResponse {
    respond(function, &event("GET", path, None, &Value::Null)).await
}

/// Calls a tool over OXP.
async fn call(function: &LambdaFunction, tool: &str, token: &str) -> ExpectedResponse {
    let body = json!({"tool_id": tool, "input": {}});
    respond(function, &event("POST", "/tools/call", Some(token), &body)).await
}

async fn who(function: &LambdaFunction, token: &str) -> Value {
    let response = call(function, "Who.AmI", token).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.body["value"].clone()
}

async fn status(function: &LambdaFunction, token: &str) -> u16 {
    call(function, "Who.AmI", token).await.status
}

/// Checks the status of calls with an accepted token that has other claims; `null` removes a claim.
async fn check<const COUNT: usize>(
    function: &LambdaFunction,
    issuer: &Issuer,
    status: u16,
    changes: [Value; COUNT],
) {
    for changes in changes {
        let response = call(function, "Who.AmI", &issuer.token_with(&changes)).await;
        assert_eq!(response.status, status, "{changes} {response:?}");
    }
}

#[tokio::test]
async fn the_user_who_signed_in_is_the_user_of_the_call() {
    for algorithm in ALGORITHMS {
        let issuer = Issuer::start().await;
        // All others are withdrawn.
        issuer.change(|it| it.keys.retain(|key| key.algorithm == algorithm));
        let function = served(Oidc::issuer(&issuer.url));
        let mut claims = claims(&issuer.url);
        claims["client_id"] = "app".into();
        claims["scope"] = "mail.read other".into();
        claims["groups"] = json!(["staff", "admins"]);
        let who = who(&function, &issuer.sign(algorithm, &claims)).await;
        let url = &issuer.url;
        let expected = json!({
            "caller": format!("token {url} alice"),
            "namespace": format!("token {url}"),
            "user": "alice",
            "client": "app",
            "scopes": ["mail.read", "other"],
            "groups": ["staff", "admins"],
        });
        assert_eq!(who, expected, "{algorithm:?}");
    }
}

#[tokio::test]
async fn the_audience_is_the_servers_url_or_a_configured_one() {
    let issuer = Issuer::start().await;
    let auth = Oidc::issuer(&issuer.url).audience("api://tools");
    let function = function(server(auth).base_path("/agents"));
    let accepted = [
        json!({"aud": "https://tools.example/agents"}),
        json!({"aud": "https://tools.example/agents/"}),
        json!({"aud": "https://tools.example/agents/mcp"}),
        json!({"aud": ["https://other.example", "api://tools"]}),
    ];
    check(&function, &issuer, 200, accepted).await;
    let rejected = [
        json!({"aud": "https://tools.example"}),
        json!({"aud": "https://tools.example/agents/mcp/x"}),
        json!({"aud": "https://tools.example.org/agents"}),
        json!({"aud": "http://tools.example/agents"}),
        json!({"aud": ""}),
    ];
    check(&function, &issuer, 401, rejected).await;
}

/// RFC 9068, 2.2: Cognito's access tokens have a `client_id` and no `aud`.
#[tokio::test]
async fn a_token_without_audience_needs_a_known_client() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url).client_id("app"));
    let claims = |client: Value, kind| json!({"aud": null, "client_id": client, "token_use": kind});
    let app = json!("app");
    check(&function, &issuer, 200, [claims(app.clone(), "access")]).await;
    let rejected = [
        claims(json!("other"), "access"),
        claims(app, "id"),
        claims(Value::Null, "access"),
    ];
    check(&function, &issuer, 401, rejected).await;
}

#[tokio::test]
async fn another_claim_can_be_the_user() {
    let issuer = Issuer::start().await;
    let auth = Oidc::issuer(&issuer.url).user_claim("oid");
    let function = served(auth.groups_claim("roles"));
    let claims = json!({"oid": "object-7", "groups": ["ignored"], "roles": "reader"});
    let who = who(&function, &issuer.token_with(&claims)).await;
    assert_eq!(who["user"], "object-7");
    assert_eq!(who["groups"], json!(["reader"]));
}

#[tokio::test]
async fn one_issuer_can_have_two_sets_of_rules() {
    let issuer = Issuer::start().await;
    let first = Oidc::issuer(&issuer.url).audience("first");
    let second = Oidc::issuer(format!("{}/", issuer.url)).audience("second");
    let function = served(Auth::from(first).or(second));
    let token = |audience| json!({"aud": audience, "client_id": "app"});
    check(&function, &issuer, 200, ["first", "second"].map(token)).await;
    check(&function, &issuer, 401, [token("third")]).await;
}

#[tokio::test]
async fn each_signer_has_its_own_audiences_and_users() {
    let one = || Jwt::with_secret_ids(["SIGNING"]);
    let two = || Jwt::with_secret_ids(["OTHER"]);
    let both = || Jwt::with_secret_ids(["SIGNING", "OTHER"]);
    let same = || Jwt::with_secret_ids(["SAME"]);
    let bound = |jwt: Jwt| jwt.audience("b").subject_is_user();
    // The statuses of each signer's tokens without an audience for bob, with one for bob, and with
    // one for alice, who is their subject.
    let (free, limited, tried) = ([200, 401, 401], [401, 400, 200], [200, 400, 200]);
    for (auth, expected) in [
        (Auth::from(one()).or(bound(two())), [free, limited]),
        (Auth::from(bound(one())).or(two()), [limited, free]),
        (bound(both()).into(), [limited, limited]),
        (both().into(), [free, free]),
        (Auth::from(one()).or(two()), [free, free]),
        // The rules of each signer that has the secret are tried.
        (Auth::from(one()).or(bound(same())), [tried, [401; 3]]),
        (Auth::from(bound(one())).or(same()), [tried, [401; 3]]),
    ] {
        let function = served(auth);
        for (secret, expected) in [SECRET, OTHER].into_iter().zip(expected) {
            let mut statuses = Vec::new();
            for (audience, user) in [(None, "bob"), (Some("b"), "bob"), (Some("b"), "alice")] {
                let mut claims = claims("https://elsewhere.example");
                claims["aud"] = json!(audience);
                let token = sign_with_secret(secret, &claims);
                let body = json!({"tool_id": "Who.AmI", "input": {}, "context": {"user_id": user}});
                let event = event("POST", "/tools/call", Some(&token), &body);
                statuses.push(respond(&function, &event).await.status);
            }
            assert_eq!(statuses, expected, "{secret}");
        }
    }
}

/// RFC 7519, 4.1: the claims of a JWT that a shared secret has signed, besides those of the events in
/// `events/jwt`.
#[tokio::test]
async fn each_claim_of_a_shared_secrets_token_has_its_rule() {
    let free = || Jwt::with_secret_ids(["SIGNING"]);
    let sign = |changes: Value| {
        let mut claims = changes;
        (claims["sub"], claims["exp"]) = (json!("alice"), json!(NOW + 600));
        sign_with_secret(SECRET, &claims)
    };
    let (function, bound) = (served(free()), served(free().audience("b").audience("c")));
    for (function, expected, changes) in [
        (&function, 401, json!({"aud": "b"})),
        (&function, 401, json!({"aud": []})),
        (&function, 401, json!({"aud": 5})),
        (&function, 200, json!({"nbf": null})),
        (&function, 401, json!({"nbf": "0"})),
        (&bound, 401, json!({"aud": ["b", 5]})),
        (&bound, 401, json!({"aud": "B"})),
        (&bound, 401, json!({"aud": "b/"})),
        (&bound, 401, json!({"aud": "b c"})),
        (&bound, 401, json!({"aud": {"b": "b"}})),
    ] {
        let token = sign(changes.clone());
        assert_eq!(status(function, &token).await, expected, "{changes}");
    }
    for (changes, scopes) in [
        (json!({}), json!([])),
        (json!({"scope": "mail.read  x"}), json!(["mail.read", "x"])),
        (json!({"scp": ["a b", "c"]}), json!(["a", "b", "c"])),
        (json!({"scope": "x", "scp": "y"}), json!(["x", "y"])),
        (json!({"scopes": "x"}), json!([])),
        (json!({"scope": 5}), json!([])),
        (json!({"scope": ["x", 5]}), json!([])),
    ] {
        let who = who(&function, &sign(changes.clone())).await;
        assert_eq!(who["scopes"], scopes, "{changes}");
        assert_eq!(who["caller"], "jwt SIGNING alice");
    }
}

#[tokio::test]
async fn an_issuer_cannot_sign_for_another_one() {
    let (one, two) = (Issuer::start().await, Issuer::start().await);
    let own = SigningKey::new("RS256", Algorithm::RS256);
    two.change(|it| it.keys = vec![own.clone()]);
    let function = served(Auth::from(Oidc::issuer(&one.url)).or(Oidc::issuer(&two.url)));
    let claims = claims(&two.url);
    assert_eq!(status(&function, &own.sign(&claims)).await, 200);
    assert_eq!(status(&function, &one.token(&claims)).await, 401);
}

#[tokio::test]
async fn a_call_for_another_user_is_rejected() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    for (subject, user, status) in [
        (json!("alice"), "alice", 200),
        (json!("alice"), "bob", 400),
        (Value::Null, "alice", 400),
        (json!(""), "alice", 400),
        (json!("a".repeat(257)), "alice", 400),
    ] {
        let body = json!({"tool_id": "Who.AmI", "input": {}, "context": {"user_id": user}});
        let token = issuer.token_with(&json!({"client_id": "app", "sub": subject}));
        let event = event("POST", "/tools/call", Some(&token), &body);
        let response = respond(&function, &event).await;
        assert_eq!(response.status, status, "{user} {response:?}");
    }
}

/// RFC 9728, sections 3 and 5.1.
#[tokio::test]
async fn clients_learn_where_to_sign_in() {
    let issuer = Issuer::start().await;
    let auth = Auth::from(Oidc::issuer(&issuer.url)).scope("tools.call");
    let function = served(auth);
    for (path, resource) in [("", URL.to_owned()), ("/mcp", format!("{URL}/mcp"))] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let response = get(&function, &path).await;
        assert_eq!(response.status, 200, "{response:?}");
        let expected = json!({
            "resource": resource,
            "authorization_servers": [issuer.url],
            "scopes_supported": ["mail.read", "mail.send", "tools.call"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Tools",
        });
        assert_eq!(response.body, expected);
    }
    let rpc = |method| json!({"jsonrpc": "2.0", "id": "1", "method": method});
    for (path, body, metadata) in [
        ("/mcp", rpc("tools/list"), "/mcp"),
        ("/tools/call", json!({"tool_id": "Who.AmI"}), ""),
        ("/opentool/call", rpc("Who_AmI"), ""),
    ] {
        let metadata = format!("{URL}/.well-known/oauth-protected-resource{metadata}");
        for (token, error) in [(None, ""), (Some("x"), "error=\"invalid_token\", ")] {
            let response = respond(&function, &event("POST", path, token, &body)).await;
            assert_eq!(response.status, 401);
            let expected =
                format!("Bearer {error}scope=\"tools.call\", resource_metadata=\"{metadata}\"");
            assert_eq!(response.headers["www-authenticate"], expected, "{path}");
            // The header is renamed on its way: the body says the same.
            let text = response.body.to_string();
            let has_both = text.contains(&metadata) && text.contains("tools.call");
            assert!(has_both, "{text}");
        }
    }
}

/// Any path can be configured, also one that would be a pattern.
#[tokio::test]
async fn unusual_paths_do_not_stop_the_server() {
    let issuer = Issuer::start().await;
    let token = issuer.valid();
    let paths = [
        "mcp", "/", "//", "a//b", "a/{b}", "{", "}", "{}", "{*b}", "a/{*b}/c", ":a", "*a", "a/:b",
        "{a}{b}", "%7Ba", "a b", "ä", "?", "#", ".", "..",
    ];
    for path in paths {
        let server = || server(Oidc::issuer(&issuer.url).audience(URL));
        let url = format!("https://api.example/{path}");
        for server in [server().base_path(path), server().public_url(url)] {
            assert_eq!(status(&function(server), &token).await, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn the_metadata_follows_the_public_url() {
    const AT: &str = "/.well-known/oauth-protected-resource";
    let issuer = Issuer::start().await;
    let server = || server(Oidc::issuer(&issuer.url));
    let at = |url: &str| function(server().public_url(url));
    let based = function(server().base_path("agents"));
    let resource_at = async |function: &LambdaFunction, path: String| {
        get(function, &path).await.body["resource"].clone()
    };
    let mapped = at("https://api.example/agents/");
    for path in ["/mcp", "/agents/mcp"] {
        let resource = resource_at(&mapped, format!("{AT}{path}")).await;
        assert_eq!(resource, "https://api.example/agents/mcp", "{path}");
    }
    for path in [format!("{AT}/agents/mcp"), format!("/agents{AT}/mcp")] {
        assert_eq!(resource_at(&based, path).await, format!("{URL}/agents/mcp"));
    }
    // The URL of the server ends like the one of its MCP endpoint.
    let alike = at("https://api.example/mcp");
    for (path, end) in [("", ""), ("/mcp", "/mcp"), ("/mcp/mcp", "/mcp")] {
        let resource = resource_at(&alike, format!("{AT}{path}")).await;
        assert_eq!(resource, format!("https://api.example/mcp{end}"), "{path}");
    }
    // A load balancer does not say what its URL is.
    let mut event = event("GET", &format!("{AT}/mcp"), None, &Value::Null);
    let context = event["requestContext"].as_object_mut().unwrap();
    context.remove("domainName");
    let response = respond(&function(server()), &event).await;
    assert_eq!(response.status, 404);
}
