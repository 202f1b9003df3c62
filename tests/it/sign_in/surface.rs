//! The metadata, the keys, CORS, the settings, and providers other than `OpenID` ones.

use std::sync::Arc;

use axum::{Router, extract::Request, http::HeaderMap};
use lambda_tools::{SignIn, Toolkit, serve};
use reqwest::Client;
use serde_json::{Value, json};
use test_support::{Running, Served, answer, assert_program, program};

use super::{Browser, CALLBACK, Server, parameter};
use crate::support::server;

async fn get(url: &str) -> (u16, Value) {
    super::answer_of(reqwest::get(url).await.unwrap()).await
}

/// RFC 8414, RFC 9728: what clients find without any configuration.
#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_names_this_server_as_its_own_issuer() {
    let server = Server::start().await;
    let url = &server.url;
    let (status, resource) = get(&format!("{url}/.well-known/oauth-protected-resource/mcp")).await;
    assert_eq!(status, 200);
    assert_eq!(resource["resource"], format!("{url}/mcp"));
    assert_eq!(resource["authorization_servers"], json!([url]));
    assert_eq!(
        resource["scopes_supported"],
        json!(["mail.read", "mail.send"])
    );
    let expected = json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "registration_endpoint": format!("{url}/register"),
        "revocation_endpoint": format!("{url}/revoke"),
        "jwks_uri": format!("{url}/.well-known/jwks.json"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        // OpenID Connect Discovery 1.0, 3: required, with RS256, although there are no ID tokens.
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA", "RS256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
        "scopes_supported": ["mail.read", "mail.send"],
    });
    for path in ["oauth-authorization-server", "openid-configuration"] {
        let (status, metadata) = get(&format!("{url}/.well-known/{path}")).await;
        assert_eq!((status, &metadata), (200, &expected), "{path}");
        assert_eq!(get(&format!("{url}/.well-known/{path}/other")).await.0, 404);
    }
}

/// RFC 6749, 5.2: the status is 401 and the challenge that of the client's scheme, if the client has
/// tried to authenticate. All clients are public here.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_only_authenticates_is_told_so() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let send = async |path: &str, form: &[(&str, &str)], credentials: Option<(&str, &str)>| {
        let request = Client::new()
            .post(format!("{}/{path}", server.url))
            .form(form);
        let request = match credentials {
            Some((id, secret)) => request.basic_auth(id, Some(secret)),
            None => request,
        };
        let response = request.send().await.unwrap();
        // Function URLs rename the header.
        let challenge = response.headers().get("x-amzn-remapped-www-authenticate");
        let challenge = challenge.map(|it| it.to_str().unwrap().to_owned());
        let (status, answer) = super::answer_of(response).await;
        (
            status,
            answer["error"].as_str().map(str::to_owned),
            challenge,
        )
    };
    let unauthorized = (
        401,
        Some("invalid_client".to_owned()),
        Some("Basic realm=\"token\"".to_owned()),
    );
    let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
    for id in [&*client, "unknown", ""] {
        for secret in ["", "secret"] {
            for (path, form) in [
                ("token", &grant[..]),
                (
                    "token",
                    &[("grant_type", "authorization_code"), ("client_id", "")],
                ),
                ("token", &[]),
                ("revoke", &[("token", refresh)]),
            ] {
                let answer = send(path, form, Some((id, secret))).await;
                assert_eq!(answer, unauthorized, "{path} {form:?} {id}");
            }
        }
    }
    let missing = (400, Some("invalid_request".to_owned()), None);
    assert_eq!(send("token", &grant, None).await, missing);
    // Nothing has used the token up. The form identifies the client, whatever else it sends.
    let with_id = [&grant[..], &[("client_id", &client)]].concat();
    let answer = send("token", &with_id, Some((&client, ""))).await;
    assert_eq!(answer, (200, None, None));
}

/// Whoever checks access tokens elsewhere finds the key that signed them.
#[tokio::test(flavor = "multi_thread")]
async fn access_tokens_are_jwts_that_the_published_keys_verify() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let token = tokens["access_token"].as_str().unwrap();
    let (_, keys) = get(&format!("{}/.well-known/jwks.json", server.url)).await;
    let header = jsonwebtoken::decode_header(token).unwrap();
    assert_eq!(header.typ.as_deref(), Some("at+jwt"));
    let keys = keys["keys"].as_array().unwrap();
    let key = keys
        .iter()
        .find(|it| it["kid"] == header.kid.clone().unwrap())
        .unwrap();
    let jwk: jsonwebtoken::jwk::Jwk = serde_json::from_value(key.clone()).unwrap();
    let mut rules = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::EdDSA);
    let resource = format!("{}/mcp", server.url);
    rules.set_audience(&[&resource]);
    rules.set_issuer(&[&server.url]);
    let key = jsonwebtoken::DecodingKey::from_jwk(&jwk).unwrap();
    let claims = jsonwebtoken::decode::<Value>(token, &key, &rules)
        .unwrap()
        .claims;
    // RFC 9068, 2.2.
    for claim in ["iss", "exp", "aud", "sub", "client_id", "iat", "jti"] {
        assert!(!claims[claim].is_null(), "{claim} {claims}");
    }
    assert_eq!(claims["client_id"], client);
    assert_eq!(claims["scope"], "mail.read");
    let life = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(life, 1800);
}

/// Pages of any origin may read what depends on no browser.
#[tokio::test(flavor = "multi_thread")]
async fn clients_in_browsers_may_use_the_endpoints_but_not_the_pages() {
    let server = Server::start().await;
    let client = Client::new();
    for (method, path) in [
        ("GET", ".well-known/oauth-protected-resource/mcp"),
        ("GET", ".well-known/oauth-authorization-server"),
        ("GET", ".well-known/jwks.json"),
        ("POST", "register"),
        ("POST", "token"),
        ("POST", "revoke"),
    ] {
        let url = format!("{}/{path}", server.url);
        let request = client.request(method.parse().unwrap(), &url);
        let response = request
            .header("origin", "https://page.example")
            .send()
            .await
            .unwrap();
        let status = response.status();
        let headers = response.headers();
        assert_eq!(headers["access-control-allow-origin"], "*", "{path}");
        let preflight = client
            .request(reqwest::Method::OPTIONS, &url)
            .send()
            .await
            .unwrap();
        assert_eq!(preflight.status(), 204, "{path}");
        let headers = preflight.headers();
        assert_eq!(headers["access-control-allow-origin"], "*", "{path}");
        let allowed = headers["access-control-allow-headers"].to_str().unwrap();
        assert!(allowed.contains("content-type"), "{allowed}");
        // With a slash at the end, it is the same endpoint.
        let request = client.request(method.parse().unwrap(), format!("{url}/"));
        let same = request.send().await.unwrap();
        assert_eq!(same.status(), status, "{path}/");
    }
    // A page on the user's machine, such as an inspector of MCP servers, learns where to sign in.
    let page = "http://localhost:6274";
    let response = client
        .post(format!("{}/mcp", server.url))
        .header("origin", page);
    let response = response.body("{}").send().await.unwrap();
    assert_eq!(response.status(), 401);
    let headers = response.headers();
    assert_eq!(headers["access-control-allow-origin"], page);
    let exposed = headers["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("www-authenticate"), "{exposed}");
    let id = server.registered(CALLBACK).await;
    let page = reqwest::get(server.authorize_url(&id, &[])).await.unwrap();
    assert!(!page.headers().contains_key("access-control-allow-origin"));
}

#[test]
fn a_server_does_not_start_without_a_rule_that_can_apply() {
    let mistake = |sign_in: SignIn| {
        let server = server(Toolkit::new([]).unwrap()).auth(sign_in);
        server.into_router().err().map(|it| it.to_string())
    };
    let open = || {
        [
            SignIn::google("c", "S"),
            SignIn::github("c", "S"),
            SignIn::openid("https://idp.example", "c", "S"),
            SignIn::cognito("https://pool.example", "c", "S"),
            SignIn::entra("https://login.example/T/v2.0", "c", "S"),
        ]
    };
    for sign_in in open() {
        let error = mistake(sign_in).unwrap();
        assert!(error.contains("say who may sign in"), "{error}");
    }
    for sign_in in open() {
        assert_eq!(mistake(sign_in.allow("anyone")), None);
    }
    for (sign_in, text) in [
        (
            SignIn::entra("https://login.example/T/v2.0", "c", "S").allow("domain:x"),
            "cannot say to whom",
        ),
        (
            SignIn::github("c", "S").allow("group:x"),
            "cannot say to whom",
        ),
        (
            SignIn::google("c", "S").allow("organization:x"),
            "cannot say to whom",
        ),
        (
            SignIn::google("c", "S").allow("acme.example"),
            "is not anyone",
        ),
        (
            SignIn::google("c", "S").allow("anyone").client("a b"),
            "neither a host",
        ),
    ] {
        let error = mistake(sign_in).unwrap();
        assert!(error.contains(text), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn github_program_of_tests() {
    assert_program();
    serve(super::tools()).await.unwrap();
}

/// GitHub, with the answers that it documents: tokens without a refresh token and without an ID
/// token, and the user in its API.
#[tokio::test(flavor = "multi_thread")]
async fn at_github_members_of_an_organization_sign_in() {
    let membership = Arc::new(std::sync::atomic::AtomicU16::new(200));
    let shared = Arc::clone(&membership);
    let github = Served::start(Router::new().fallback(move |request: Request| {
        let membership = shared.load(std::sync::atomic::Ordering::Relaxed);
        async move { github(request.uri().path(), request.headers(), membership) }
    }))
    .await;
    let mut command = program("sign_in::surface::github_program_of_tests");
    let (_running, url) = Running::serving(command.envs([
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_OAUTH_KEY", super::KEY),
        ("TOOLS_SIGN_IN_ALLOW", "organization:Acme"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "c"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "s"),
        ("TOOLS_SIGN_IN_ISSUER", &github.url),
        ("TOOLS_SIGN_IN_PROVIDER", "github"),
    ]));
    let server = Server::in_a_process(url).await;
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    let sign_in = async || {
        let browser = Browser::new();
        let provider = browser.to_provider(&url).await;
        let scope = parameter(&provider, "scope").unwrap();
        assert!(scope.contains("read:org"), "{scope}");
        let state = parameter(&provider, "state").unwrap();
        let callback = format!(
            "{}/authorization/github/callback?code=c&state={state}",
            server.url
        );
        browser.open(&callback).await.1.parse().unwrap()
    };
    let code = parameter(&sign_in().await, "code").unwrap();
    let (status, tokens) = server.redeem(&client, &code).await;
    assert_eq!(status, 200, "{tokens}");
    let (_, said) = server.whose(tokens["access_token"].as_str().unwrap()).await;
    assert_eq!(
        (&said["user"], &said["groups"]),
        (&json!("1"), &json!(["acme"]))
    );
    let token = tokens["refresh_token"].as_str().unwrap();
    // GitHub is overloaded: nothing is lost.
    let set = |status| membership.store(status, std::sync::atomic::Ordering::Relaxed);
    set(429);
    assert_eq!(server.refresh(&client, token).await.0, 503);
    set(200);
    let (status, tokens) = server.refresh(&client, token).await;
    assert_eq!(status, 200, "{tokens}");
    // The user has been invited, but is not a member.
    set(202);
    assert_eq!(
        parameter(&sign_in().await, "error").as_deref(),
        Some("access_denied")
    );
    // The user has left the organization.
    set(404);
    let token = tokens["refresh_token"].as_str().unwrap();
    assert_eq!(server.refresh(&client, token).await.0, 400);
    assert_eq!(
        parameter(&sign_in().await, "error").as_deref(),
        Some("access_denied")
    );
}

fn github(path: &str, headers: &HeaderMap, membership: u16) -> axum::response::Response {
    let json_type = [("content-type", "application/json; charset=utf-8")];
    let is_bearer = headers
        .get("authorization")
        .is_some_and(|it| it == "Bearer gho_16C7e42F");
    let body = match path {
        "/login/oauth/access_token" => json!({
            "access_token": "gho_16C7e42F", "scope": "read:org,read:user", "token_type": "bearer",
        }),
        // docs.github.com: without a User-Agent, requests are rejected.
        _ if !headers.contains_key("user-agent") => return answer(403, &[], "User-Agent"),
        _ if !is_bearer => return answer(401, &json_type, r#"{"message": "Bad credentials"}"#),
        "/api/v3/user" => json!({"login": "octocat", "id": 1, "type": "User"}),
        "/api/v3/user/memberships/orgs/acme" if membership == 200 => {
            json!({"state": "active", "role": "member"})
        }
        "/api/v3/user/memberships/orgs/acme" if membership == 202 => {
            json!({"state": "pending", "role": "member"})
        }
        _ => return answer(membership, &json_type, r#"{"message": "Not Found"}"#),
    };
    answer(200, &json_type, body.to_string())
}
