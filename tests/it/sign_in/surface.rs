//! The metadata, the keys, CORS, the settings, and providers other than `OpenID` ones.

use std::sync::atomic::AtomicU16;

use axum::http::HeaderMap;
use lambda_tools::serve;
use reqwest::Method;
use test_support::{Running, answer, assert_program, program};

use super::*;

async fn get(url: &str) -> (u16, Value) {
    answer_of(reqwest::get(url).await.unwrap()).await
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
    let scopes = json!(["mail.read", "mail.send"]);
    assert_eq!(resource["scopes_supported"], scopes);
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
        "scopes_supported": scopes,
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
    let (client, tokens) = server.tokens(&alice()).await;
    let refresh = text(&tokens, "refresh_token");
    let send = async |path: &str, form: &[(&str, &str)], id: Option<&str>| {
        let request = Client::new().post(format!("{}/{path}", server.url));
        let request = match id {
            Some(id) => request.basic_auth(id, Some("secret")),
            None => request,
        };
        let response = request.form(form).send().await.unwrap();
        // Function URLs rename the header.
        let challenge = response.headers().get("x-amzn-remapped-www-authenticate");
        let challenge = challenge.map(|it| it.to_str().unwrap().to_owned());
        let (status, answer) = answer_of(response).await;
        (status, answer["error"].clone(), challenge)
    };
    let challenge = Some("Basic realm=\"token\"".to_owned());
    let unauthorized = (401, json!("invalid_client"), challenge);
    let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
    let code = [("grant_type", "authorization_code"), ("client_id", "")];
    for id in [&*client, "unknown", ""] {
        for (path, form) in [
            ("token", &grant[..]),
            ("token", &code),
            ("token", &[]),
            ("revoke", &[("token", refresh)]),
        ] {
            let answer = send(path, form, Some(id)).await;
            assert_eq!(answer, unauthorized, "{path} {form:?} {id}");
        }
    }
    let missing = (400, json!("invalid_request"), None);
    assert_eq!(send("token", &grant, None).await, missing);
    // Nothing has used the token up. The form identifies the client, whatever else it sends.
    let with_id = [&grant[..], &[("client_id", &client)]].concat();
    let answer = send("token", &with_id, Some(&client)).await;
    assert_eq!(answer, (200, Value::Null, None));
}

/// Pages of any origin may read what depends on no browser.
#[tokio::test(flavor = "multi_thread")]
async fn clients_in_browsers_may_use_the_endpoints() {
    const ORIGIN: &str = "access-control-allow-origin";
    let server = Server::start().await;
    let send = async |method: &Method, path: &str, page: &str| {
        let request = Client::new().request(method.clone(), format!("{}/{path}", server.url));
        request.header("origin", page).send().await.unwrap()
    };
    for (method, path) in [
        (Method::GET, ".well-known/oauth-protected-resource/mcp"),
        (Method::GET, ".well-known/oauth-authorization-server"),
        (Method::GET, ".well-known/jwks.json"),
        (Method::POST, "register"),
        (Method::POST, "token"),
        (Method::POST, "revoke"),
    ] {
        let response = send(&method, path, "https://page.example").await;
        assert_eq!(response.headers()[ORIGIN], "*", "{path}");
        let preflight = send(&Method::OPTIONS, path, "https://page.example").await;
        assert_eq!(preflight.status(), 204, "{path}");
        let headers = preflight.headers();
        assert_eq!(headers[ORIGIN], "*", "{path}");
        let allowed = headers["access-control-allow-headers"].to_str().unwrap();
        assert!(allowed.contains("content-type"), "{allowed}");
        // With a slash at the end, it is the same endpoint.
        let same = send(&method, &format!("{path}/"), "https://page.example").await;
        assert_eq!(same.status(), response.status(), "{path}/");
    }
}

/// Clickjacking. The page's form leads to the client's app.
#[tokio::test(flavor = "multi_thread")]
async fn the_consent_page_can_be_neither_framed_nor_read() {
    let server = Server::start().await;
    let client = server.registered(APP).await;
    let url = server.authorize_url(&client, &[("redirect_uri", APP)]);
    let page = reqwest::get(url).await.unwrap();
    let headers = page.headers();
    let policy = headers["content-security-policy"].to_str().unwrap();
    let form_action = "form-action 'self' https: http: cursor:;";
    for part in ["default-src 'none'", "frame-ancestors 'none'", form_action] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(headers["cache-control"], "no-store");
    assert!(!headers.contains_key("access-control-allow-origin"));
}

#[test]
fn a_server_does_not_start_without_a_rule_that_can_apply() {
    let mistake = |sign_in: SignIn| {
        let server = server(Toolkit::new([]).unwrap()).auth(sign_in);
        server.into_router().err().map(|it| it.to_string())
    };
    let google = || SignIn::google("c", "S");
    let entra = || SignIn::entra("https://login.example/T/v2.0", "c", "S");
    let github = || SignIn::github("c", "S");
    for sign_in in [
        google(),
        github(),
        entra(),
        SignIn::openid("https://idp.example", "c", "S"),
        SignIn::cognito("https://pool.example", "c", "S"),
    ] {
        let error = mistake(sign_in.clone()).unwrap();
        assert!(error.contains("say who may sign in"), "{error}");
        assert_eq!(mistake(sign_in.allow("anyone")), None);
    }
    for (sign_in, text) in [
        (entra().allow("domain:x"), "cannot say to whom"),
        (github().allow("group:x"), "cannot say to whom"),
        (google().allow("organization:x"), "cannot say to whom"),
        (google().allow("acme.example"), "is not anyone"),
        (google().allow("anyone").client("a b"), "neither a host"),
    ] {
        let error = mistake(sign_in).unwrap();
        assert!(error.contains(text), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn github_program_of_tests() {
    assert_program();
    serve(tools()).await.unwrap();
}

/// GitHub, with the answers that it documents: tokens without a refresh token and without an ID
/// token, and the user in its API.
#[tokio::test(flavor = "multi_thread")]
async fn at_github_members_of_an_organization_sign_in() {
    let membership = Arc::new(AtomicU16::new(200));
    let shared = Arc::clone(&membership);
    let github = Router::new().fallback(async move |request: Request| {
        let membership = shared.load(Ordering::Relaxed);
        github(request.uri().path(), request.headers(), membership)
    });
    let github = Served::start(github).await;
    let mut command = program("sign_in::surface::github_program_of_tests");
    let (_running, url) = Running::serving(command.envs([
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_OAUTH_KEY", KEY),
        ("TOOLS_SIGN_IN_ALLOW", "organization:Acme"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "c"),
        ("TOOLS_SIGN_IN_CLIENT_SECRET", "s"),
        ("TOOLS_SIGN_IN_ISSUER", &github.url),
        ("TOOLS_SIGN_IN_PROVIDER", "github"),
    ]));
    // The requests of this client, to that process.
    let server = Server {
        url,
        ..Server::start().await
    };
    let client = server.registered(CALLBACK).await;
    let sign_in = async || {
        let browser = Browser::new();
        let url = server.authorize_url(&client, &[]);
        let provider = browser.to_provider(&url).await;
        let scope = parameter(&provider, "scope").unwrap();
        assert!(scope.contains("read:org"), "{scope}");
        let state = parameter(&provider, "state").unwrap();
        let callback = format!("{}/authorization/github/callback", server.url);
        let parameters = [("code", "c"), ("state", &state)];
        let callback = Url::parse_with_params(&callback, parameters).unwrap();
        browser.open(callback).await.1.parse().unwrap()
    };
    let set = |status| membership.store(status, Ordering::Relaxed);
    let code = parameter(&sign_in().await, "code").unwrap();
    let tokens = server.redeemed(&client, &code).await;
    let whose = server.whose(&tokens).await;
    assert_eq!(whose["user"], "1");
    assert_eq!(whose["groups"], json!(["acme"]));
    // GitHub is overloaded: nothing is lost.
    set(429);
    assert_eq!(server.refresh(&client, &tokens).await.0, 503);
    set(200);
    let (status, tokens) = server.refresh(&client, &tokens).await;
    assert_eq!(status, 200, "{tokens}");
    // The user has been invited, but is not a member; then the user has left the organization.
    for status in [202, 404] {
        set(status);
        assert_error(&sign_in().await, Some("access_denied"), "");
    }
    assert_eq!(server.refresh(&client, &tokens).await.0, 400);
}

fn github(path: &str, headers: &HeaderMap, membership: u16) -> axum::response::Response {
    let json_type = [("content-type", "application/json; charset=utf-8")];
    let token = headers.get("authorization");
    let is_active = membership == 200;
    let state = if is_active { "active" } else { "pending" };
    let body = match path {
        "/login/oauth/access_token" => json!({
            "access_token": "gho_16C7e42F", "scope": "read:org,read:user", "token_type": "bearer",
        }),
        // docs.github.com: without a User-Agent, requests are rejected.
        _ if !headers.contains_key("user-agent") => return answer(403, &[], "User-Agent"),
        _ if token.is_none_or(|it| it != "Bearer gho_16C7e42F") => {
            return answer(401, &json_type, r#"{"message": "Bad credentials"}"#);
        }
        "/api/v3/user" => json!({"login": "octocat", "id": 1, "type": "User"}),
        "/api/v3/user/memberships/orgs/acme" if [200, 202].contains(&membership) => {
            json!({"state": state, "role": "member"})
        }
        _ => return answer(membership, &json_type, r#"{"message": "Not Found"}"#),
    };
    answer(200, &json_type, body.to_string())
}
