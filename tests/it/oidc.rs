//! Access tokens of identity providers, checked with the keys that the issuer publishes.

mod attacks;
mod gateway;
mod keys;
mod scopes;

use jsonwebtoken::Algorithm;
use lambda_tools::{
    Auth, Caller, Context, Failure, Jwt, Oidc, Server, Tool, Toolkit,
    idempotency::Idempotency,
    secrets::Secrets,
    testing::{ExpectedResponse, LambdaFunction},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::issuer::{ALGORITHMS, Issuer, NOW, SigningKey, URL, claims, sign_with_secret};

use crate::support::{self, function};

/// Returns the caller.
#[derive(Deserialize, JsonSchema)]
struct WhoAmI {}

async fn who_am_i(_: WhoAmI, cx: Context) -> Result<Value, Failure> {
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
        ("SIGNING", "a-signing-secret-0123456789abcdefgh"),
        ("OTHER", "another-signing-secret-0123456789abcdefgh"),
        ("SAME", "a-signing-secret-0123456789abcdefgh"),
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
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut event: Value = serde_json::from_str(&support::event(method, path, &body)).unwrap();
    event["requestContext"]["domainName"] = "tools.example".into();
    if let Some(token) = token {
        event["headers"]["authorization"] = format!("Bearer {token}").into();
    }
    event
}

async fn respond(function: &LambdaFunction, event: &Value) -> ExpectedResponse {
    function.respond(&event.to_string()).await.unwrap()
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
        assert_eq!(
            who,
            json!({
                "caller": format!("token {url} alice"),
                "namespace": format!("token {url}"),
                "user": "alice",
                "client": "app",
                "scopes": ["mail.read", "other"],
                "groups": ["staff", "admins"],
            }),
            "{algorithm:?}"
        );
    }
}

#[tokio::test]
async fn the_audience_is_the_servers_url_or_a_configured_one() {
    let issuer = Issuer::start().await;
    let auth = Oidc::issuer(&issuer.url).audience("api://tools");
    let function = function(server(auth).base_path("/agents"));
    for (audience, status) in [
        (json!("https://tools.example/agents"), 200),
        (json!("https://tools.example/agents/"), 200),
        (json!("https://tools.example/agents/mcp"), 200),
        (json!(["https://other.example", "api://tools"]), 200),
        (json!("https://tools.example"), 401),
        (json!("https://tools.example/agents/mcp/x"), 401),
        (json!("https://tools.example.org/agents"), 401),
        (json!("http://tools.example/agents"), 401),
        (json!(""), 401),
        (json!([]), 401),
        (json!(5), 401),
    ] {
        let token = issuer.token_with(&json!({"aud": audience}));
        let response = call(&function, "Who.AmI", &token).await;
        assert_eq!(response.status, status, "{audience} {response:?}");
    }
}

/// RFC 9068, 2.2: Cognito's access tokens have a `client_id` and no `aud`.
#[tokio::test]
async fn a_token_without_audience_needs_a_known_client() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url).client_id("app"));
    for (client, kind, status) in [
        (json!("app"), json!("access"), 200),
        (json!("other"), json!("access"), 401),
        (json!("app"), json!("id"), 401),
        (Value::Null, json!("access"), 401),
    ] {
        let claims = json!({"aud": null, "client_id": client, "token_use": kind});
        let response = call(&function, "Who.AmI", &issuer.token_with(&claims)).await;
        assert_eq!(response.status, status, "{claims}");
    }
}

#[tokio::test]
async fn another_claim_can_be_the_user() {
    let issuer = Issuer::start().await;
    let auth = Oidc::issuer(&issuer.url)
        .user_claim("oid")
        .groups_claim("roles");
    let function = served(auth);
    let claims = json!({"oid": "object-7", "groups": ["ignored"], "roles": "reader"});
    let who = who(&function, &issuer.token_with(&claims)).await;
    assert_eq!(who["user"], "object-7");
    assert_eq!(who["groups"], json!(["reader"]));
}

/// The users of one issuer, and of two issuers, do not share results, even if their token lacks the
/// claim that names users.
#[tokio::test]
async fn users_do_not_share_results() {
    let (one, two) = (Issuer::start().await, Issuer::start().await);
    let by_subject = Auth::from(Oidc::issuer(&one.url)).or(Oidc::issuer(&two.url));
    let by_mail = Auth::from(Oidc::issuer(&one.url).user_claim("email"));
    let body = json!({"tool_id": "Who.AmI", "call_id": "c-1", "input": {}});
    for (auth, calls) in [
        (
            by_subject,
            &[
                (&one, "alice", false),
                (&one, "bob", false),
                (&two, "alice", false),
                (&one, "client app", false),
                (&one, "", false),
                (&one, "alice", true),
            ][..],
        ),
        (
            by_mail,
            &[
                (&one, "alice", false),
                (&one, "alice", true),
                (&one, "bob", false),
            ],
        ),
    ] {
        let function = function(server(auth).idempotency(Idempotency::in_memory()));
        for (issuer, subject, is_replay) in calls {
            let token = issuer.token_with(&json!({"client_id": "app", "sub": subject}));
            let event = event("POST", "/tools/call", Some(&token), &body);
            let response = respond(&function, &event).await;
            assert_eq!(response.status, 200, "{response:?}");
            let header = response.headers.contains_key("idempotent-replay");
            assert_eq!(header, *is_replay, "{subject}");
        }
    }
}

#[tokio::test]
async fn one_issuer_can_have_two_sets_of_rules() {
    let issuer = Issuer::start().await;
    let first = Oidc::issuer(&issuer.url).audience("first");
    let second = Oidc::issuer(format!("{}/", issuer.url)).audience("second");
    let function = served(Auth::from(first).or(second));
    for (audience, status) in [("first", 200), ("second", 200), ("third", 401)] {
        let token = issuer.token_with(&json!({"aud": audience, "client_id": "app"}));
        let response = call(&function, "Who.AmI", &token).await;
        assert_eq!(response.status, status, "{audience} {response:?}");
    }
}

#[tokio::test]
async fn each_signer_has_its_own_audiences_and_users() {
    let one = || Jwt::with_secret_ids(["SIGNING"]);
    let two = || Jwt::with_secret_ids(["OTHER"]);
    let both = || Jwt::with_secret_ids(["SIGNING", "OTHER"]);
    let same = || Jwt::with_secret_ids(["SAME"]);
    let bound = |jwt: Jwt| jwt.audience("b").subject_is_user();
    let secrets = [
        "a-signing-secret-0123456789abcdefgh",
        "another-signing-secret-0123456789abcdefgh",
    ];
    // The statuses of each signer's tokens without an audience for bob, with one for bob, and with
    // one for alice, who is their subject.
    let (free, limited) = ([200, 401, 401], [401, 400, 200]);
    for (auth, expected) in [
        (Auth::from(one()).or(bound(two())), [free, limited]),
        (Auth::from(bound(one())).or(two()), [limited, free]),
        (bound(both()).into(), [limited, limited]),
        (both().into(), [free, free]),
        (Auth::from(one()).or(two()), [free, free]),
        // The rules of each signer that has the secret are tried.
        (
            Auth::from(one()).or(bound(same())),
            [[200, 400, 200], [401; 3]],
        ),
        (
            Auth::from(bound(one())).or(same()),
            [[200, 400, 200], [401; 3]],
        ),
    ] {
        let function = served(auth);
        for (secret, expected) in secrets.into_iter().zip(expected) {
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

/// RFC 7519, 4.1: the claims of a JWT that a shared secret has signed.
#[tokio::test]
async fn each_claim_of_a_shared_secrets_token_has_its_rule() {
    let free = || Jwt::with_secret_ids(["SIGNING"]);
    let bound = || free().audience("b").audience("c");
    let sign = |claims: &Value| sign_with_secret("a-signing-secret-0123456789abcdefgh", claims);
    let half_past: Value = format!("{}.5", NOW - 60).parse().unwrap();
    for (jwt, changes, status) in [
        (free(), json!({}), 200),
        (free(), json!({"exp": NOW - 59}), 200),
        (free(), json!({"exp": NOW - 60}), 401),
        (free(), json!({"exp": half_past}), 200),
        (free(), json!({"exp": null}), 401),
        (free(), json!({"exp": "9999999999"}), 401),
        (free(), json!({"nbf": NOW + 60}), 200),
        (free(), json!({"nbf": NOW + 61}), 401),
        (free(), json!({"nbf": null}), 200),
        (free(), json!({"nbf": "0"}), 401),
        (free(), json!({"sub": null}), 200),
        (free(), json!({"sub": 5}), 401),
        (free(), json!({"sub": ["alice"]}), 401),
        (free(), json!({"aud": null}), 200),
        (free(), json!({"aud": "b"}), 401),
        (free(), json!({"aud": []}), 401),
        (free(), json!({"aud": ""}), 401),
        (free(), json!({"aud": 5}), 401),
        (bound(), json!({}), 401),
        (bound(), json!({"aud": null}), 401),
        (bound(), json!({"aud": "b"}), 200),
        (bound(), json!({"aud": ["x", "c"]}), 200),
        (bound(), json!({"aud": ["x"]}), 401),
        (bound(), json!({"aud": ["b", 5]}), 401),
        (bound(), json!({"aud": "B"}), 401),
        (bound(), json!({"aud": "b/"}), 401),
        (bound(), json!({"aud": "b c"}), 401),
        (bound(), json!({"aud": {"b": "b"}}), 401),
    ] {
        let mut claims = json!({"sub": "alice", "exp": NOW + 600});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let response = call(&served(jwt), "Who.AmI", &sign(&claims)).await;
        assert_eq!(response.status, status, "{changes} {response:?}");
    }
    let function = served(free());
    for (changes, scopes) in [
        (json!({}), json!([])),
        (json!({"scope": "mail.read  x"}), json!(["mail.read", "x"])),
        (json!({"scp": ["a b", "c"]}), json!(["a", "b", "c"])),
        (json!({"scope": "x", "scp": "y"}), json!(["x", "y"])),
        (json!({"scopes": "x"}), json!([])),
        (json!({"scope": 5}), json!([])),
        (json!({"scope": ["x", 5]}), json!([])),
    ] {
        let mut claims = changes.clone();
        (claims["sub"], claims["exp"]) = (json!("alice"), json!(NOW + 600));
        let who = who(&function, &sign(&claims)).await;
        assert_eq!(who["scopes"], scopes, "{changes}");
        assert_eq!(who["caller"], "jwt SIGNING alice");
    }
}

/// Both secrets of a signer sign for the same caller, whose name is the first id.
#[tokio::test]
async fn the_first_id_names_the_signer_of_each_secret() {
    let function = served(Jwt::with_secret_ids(["OTHER|SIGNING"]).subject_is_user());
    for secret in [
        "a-signing-secret-0123456789abcdefgh",
        "another-signing-secret-0123456789abcdefgh",
    ] {
        let token = sign_with_secret(secret, &json!({"sub": "alice", "exp": NOW + 600}));
        let who = who(&function, &token).await;
        assert_eq!(who["caller"], "jwt OTHER alice");
        assert_eq!(who["user"], "alice");
    }
}

#[tokio::test]
async fn an_issuer_cannot_sign_for_another_one() {
    let (one, two) = (Issuer::start().await, Issuer::start().await);
    let own = SigningKey::new("RS256", Algorithm::RS256);
    two.change(|it| it.keys = vec![own.clone()]);
    let function = served(Auth::from(Oidc::issuer(&one.url)).or(Oidc::issuer(&two.url)));
    let claims = claims(&two.url);
    let accepted = call(&function, "Who.AmI", &own.sign(&claims)).await;
    assert_eq!(accepted.status, 200);
    let rejected = call(&function, "Who.AmI", &one.token(&claims)).await;
    assert_eq!(rejected.status, 401);
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
        let response = respond(&function, &event("GET", &path, None, &Value::Null)).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(
            response.body,
            json!({
                "resource": resource,
                "authorization_servers": [issuer.url],
                "scopes_supported": ["mail.read", "mail.send", "tools.call"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Tools",
            })
        );
    }
    for (path, body, metadata) in [
        (
            "/mcp",
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            "/mcp",
        ),
        ("/tools/call", json!({"tool_id": "Who.AmI"}), ""),
        (
            "/opentool/call",
            json!({"jsonrpc": "2.0", "id": "1", "method": "Who_AmI"}),
            "",
        ),
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
            assert!(
                text.contains(&metadata) && text.contains("tools.call"),
                "{text}"
            );
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
        let based = server(Oidc::issuer(&issuer.url).audience(URL)).base_path(path);
        assert_eq!(call(&function(based), "Who.AmI", &token).await.status, 200);
        let url = format!("https://api.example/{path}");
        let public = server(Oidc::issuer(&issuer.url).audience(URL)).public_url(url);
        assert_eq!(call(&function(public), "Who.AmI", &token).await.status, 200);
    }
    let well_known = "/.well-known/oauth-protected-resource";
    for (path, status) in [("a/:b", 200), ("a/*c", 200), ("a/x", 404), ("a", 404)] {
        let url = "https://api.example/a/:b";
        let server = server(Oidc::issuer(&issuer.url)).public_url(url);
        let function = function(server.base_path("a/*c"));
        let path = format!("{well_known}/{path}/mcp");
        let response = respond(&function, &event("GET", &path, None, &Value::Null)).await;
        assert_eq!(response.status, status, "{path} {response:?}");
    }
}

/// A client that gets another answer to its first GET does not look for the metadata.
#[tokio::test]
async fn credentials_are_checked_before_the_method() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    for method in ["GET", "DELETE", "PUT", "POST"] {
        let response = respond(&function, &event(method, "/mcp", None, &Value::Null)).await;
        assert_eq!(response.status, 401, "{method}");
        assert!(response.headers["www-authenticate"].contains("resource_metadata"));
    }
}

#[tokio::test]
async fn the_metadata_follows_the_public_url() {
    let issuer = Issuer::start().await;
    let auth = || Oidc::issuer(&issuer.url);
    let well_known = "/.well-known/oauth-protected-resource";
    let get = async |function: &LambdaFunction, path: &str| {
        respond(function, &event("GET", path, None, &Value::Null)).await
    };
    let mapped = function(server(auth()).public_url("https://api.example/agents/"));
    for path in ["/mcp", "/agents/mcp"] {
        let response = get(&mapped, &format!("{well_known}{path}")).await;
        assert_eq!(
            response.body["resource"], "https://api.example/agents/mcp",
            "{path}"
        );
    }
    let based = function(server(auth()).base_path("agents"));
    for path in [
        format!("{well_known}/agents/mcp"),
        format!("/agents{well_known}/mcp"),
    ] {
        let response = get(&based, &path).await;
        assert_eq!(
            response.body["resource"],
            format!("{URL}/agents/mcp"),
            "{path}"
        );
    }
    // The URL of the server ends like the one of its MCP endpoint.
    let alike = function(server(auth()).public_url("https://api.example/mcp"));
    for (path, resource) in [("", ""), ("/mcp", "/mcp"), ("/mcp/mcp", "/mcp")] {
        let response = get(&alike, &format!("{well_known}{path}")).await;
        let resource = format!("https://api.example/mcp{resource}");
        assert_eq!(response.body["resource"], resource, "{path}");
    }
    // A load balancer does not say what its URL is.
    let unknown = served(auth());
    let mut event = event("GET", &format!("{well_known}/mcp"), None, &Value::Null);
    event["requestContext"]
        .as_object_mut()
        .unwrap()
        .remove("domainName");
    assert_eq!(respond(&unknown, &event).await.status, 404);
}
