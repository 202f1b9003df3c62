//! Scopes that a call requires, in every protocol.

use lambda_tools::ApiKeys;

use super::*;

fn token(issuer: &Issuer, scopes: &str) -> String {
    issuer.token_with(&json!({"scope": scopes}))
}

fn mcp(tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

fn oxp(tool: &str) -> Value {
    json!({"tool_id": tool, "input": {}})
}

fn opentool(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "1", "method": tool, "params": {}})
}

async fn post(
    function: &LambdaFunction,
    path: &str,
    token: &str,
    body: &Value,
) -> (u16, Value, String) {
    let mut event = event("POST", path, Some(token), body);
    event["headers"]["accept"] = "application/json, text/event-stream".into();
    let response = respond(function, &event).await;
    let challenge = response.headers.get("www-authenticate").cloned();
    let challenge = challenge.unwrap_or_default();
    (response.status, response.body, challenge)
}

#[tokio::test]
async fn a_call_without_its_scopes_is_rejected_with_all_that_it_needs() {
    let issuer = Issuer::start().await;
    let function = served(Auth::from(Oidc::issuer(&issuer.url)).scope("tools.call"));
    // Scopes that no tool requires are not asked for again.
    let token = token(&issuer, "tools.call openid");
    let needed = "mail.read mail.send tools.call";

    let (status, body, challenge) = post(&function, "/mcp", &token, &mcp("Mail_Send")).await;
    assert_eq!(status, 403, "{body}");
    let metadata = format!("{URL}/.well-known/oauth-protected-resource/mcp");
    let expected = format!(
        "Bearer error=\"insufficient_scope\", scope=\"{needed}\", resource_metadata=\"{metadata}\""
    );
    assert_eq!(challenge, expected);
    let data =
        json!({"error": "insufficient_scope", "scope": needed, "resource_metadata": metadata});
    assert_eq!(body["error"]["data"], data);

    let call = oxp("Mail.Send");
    let (status, body, challenge) = post(&function, "/tools/call", &token, &call).await;
    assert_eq!((status, &*challenge), (400, ""), "{body}");
    let message = "The access token does not permit this call";
    assert_eq!(body["message"], message);
    let expected = format!(
        "Mail.Send@1.0.0 requires an access token with the scope '{needed}'. The identity provider that \
         issues tokens is named at {URL}/.well-known/oauth-protected-resource."
    );
    assert_eq!(body["developer_message"], expected);

    let call = opentool("Mail_Send");
    let (status, body, _) = post(&function, "/opentool/call", &token, &call).await;
    assert_eq!((status, &body["error"]["code"]), (200, &json!(-32001)));
    let message = body["error"]["message"].as_str().unwrap();
    let named = format!("the scope '{needed}'");
    assert!(message.contains(&named), "{message}");

    // A new token must not lose the granted scopes of other tools.
    let token = issuer.token_with(&json!({"scope": "tools.call mail.send openid"}));
    let (_, body, _) = post(&function, "/mcp", &token, &mcp("Mail_Read")).await;
    assert_eq!(body["error"]["data"]["scope"], needed);
}

/// Azure's tokens have the short names of the scopes that clients have asked for.
#[tokio::test]
async fn a_scope_with_the_resource_in_its_name_has_a_short_name_in_the_token() {
    let issuer = Issuer::start().await;
    let full = "https://tools.example/mcp/tools.call";
    let function = served(Auth::from(Oidc::issuer(&issuer.url)).scope(full));
    for (scopes, status) in [
        ("tools.call", 200),
        (full, 200),
        ("mcp/tools.call", 403),
        ("call", 403),
        ("https://other.example/mcp/tools.call", 403),
        ("", 403),
    ] {
        let token = token(&issuer, scopes);
        let (got, body, challenge) = post(&function, "/mcp", &token, &mcp("Who_AmI")).await;
        assert_eq!(got, status, "{scopes} {body}");
        let asks = challenge.contains(&format!("scope=\"{full}\""));
        assert_eq!(asks, status == 403, "{challenge}");
    }
    // A scope without a resource has only one name.
    let function = served(Auth::from(Oidc::issuer(&issuer.url)).scope("mcp/tools.call"));
    let token = token(&issuer, "tools.call");
    let (status, ..) = post(&function, "/mcp", &token, &mcp("Who_AmI")).await;
    assert_eq!(status, 403);
}

/// A scope has no space (RFC 6749, 3.3): two of them in one text are two. The scopes of a server
/// apply to all tokens, on both sides of `or`.
#[tokio::test]
async fn scopes_can_be_separated_by_spaces() {
    let issuer = Issuer::start().await;
    let tool = Tool::new("Who.AmI@1.0.0", who_am_i).scope(" mail.read\nmail.send ");
    let keys = Auth::from(ApiKeys::with_ids(["KEY"])).scope("");
    let keys = keys.scope("tools.call  tools.list");
    let auth = Auth::from(Oidc::issuer(&issuer.url)).or(keys);
    let function = function(support::server(Toolkit::new([tool]).unwrap()).auth(auth));
    let all = "mail.read mail.send tools.call tools.list";
    let (_, body, challenge) = post(&function, "/mcp", &token(&issuer, "x"), &mcp("Who_AmI")).await;
    assert_eq!(body["error"]["data"]["scope"], all);
    let asked = format!("scope=\"{all}\"");
    assert!(challenge.contains(&asked), "{challenge}");
    let (status, body, _) = post(&function, "/mcp", &token(&issuer, all), &mcp("Who_AmI")).await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn only_tokens_have_scopes() {
    let issuer = Issuer::start().await;
    let auth = Auth::from(Oidc::issuer(&issuer.url))
        .or(ApiKeys::with_ids(["KEY"]))
        .or(Jwt::with_secret_ids(["SIGNING"]));
    let function = served(auth);
    let signed = |scopes: Value| {
        let claims = json!({"sub": "alice", "exp": NOW + 600, "scp": scopes});
        sign_with_secret(SECRET, &claims)
    };
    let body = oxp("Mail.Read");
    for (token, status) in [
        ("a-key-0123456789".to_owned(), 200),
        (signed(json!("mail.read")), 200),
        (signed(json!(["x", "mail.read"])), 200),
        (signed(json!("mail.readx")), 400),
        (signed(Value::Null), 400),
        (token(&issuer, "mail.read"), 200),
        (token(&issuer, "Mail.Read"), 400),
    ] {
        let (got, body, _) = post(&function, "/tools/call", &token, &body).await;
        assert_eq!(got, status, "{token} {body}");
    }
}

#[tokio::test]
async fn a_list_can_show_only_what_its_reader_may_call() {
    let issuer = Issuer::start().await;
    let auth = || Auth::from(Oidc::issuer(&issuer.url)).or(ApiKeys::with_ids(["KEY"]));
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let names = async |function: &LambdaFunction, token: &str| {
        let (_, mcp, _) = post(function, "/mcp", token, &listing).await;
        let get =
            async |path| respond(function, &event("GET", path, Some(token), &Value::Null)).await;
        let (oxp, opentool) = (get("/tools").await, get("/opentool/load").await);
        let lists = [
            &mcp["result"]["tools"],
            &oxp.body["items"],
            &opentool.body["functions"],
        ];
        let [mcp, oxp, opentool] = lists.map(|list| {
            let names = list.as_array().unwrap().iter().map(|it| it["name"].clone());
            names.collect::<Vec<_>>()
        });
        assert_eq!((&mcp, mcp.len()), (&oxp, opentool.len()));
        #[cfg(feature = "explorer")]
        {
            let explored = get("/explorer.json").await.body["tools"].take();
            assert_eq!(explored.as_array().unwrap().len(), mcp.len());
        }
        mcp
    };
    let all = ["Who_AmI", "Mail_Read", "Mail_Send"];
    let served = |change: fn(Server) -> Server| {
        let server = server(auth());
        #[cfg(feature = "explorer")]
        let server = server.explorer(true);
        function(change(server))
    };
    assert_eq!(names(&served(|it| it), &token(&issuer, "")).await, all);
    let filtered = served(Server::list_only_callable_tools);
    for (token, count) in [
        (token(&issuer, ""), 1),
        (token(&issuer, "mail.read"), 2),
        (token(&issuer, "mail.read mail.send"), 3),
        ("a-key-0123456789".to_owned(), 3),
        (token(&issuer, ""), 1),
    ] {
        assert_eq!(names(&filtered, &token).await, all[..count], "{token}");
    }
}

/// Texts name only what the list shows; a call that names a hidden tool exactly is still told which
/// scopes it needs.
#[tokio::test]
async fn suggestions_and_versions_name_only_what_the_list_shows() {
    let issuer = Issuer::start().await;
    let mut tools = tools();
    tools.push(Tool::new("Who.AmI@2.0.0", who_am_i).scope("admin"));
    tools.push(Tool::new("Vault.Open@1.0.0", who_am_i).scope("admin"));
    let server = support::server(Toolkit::new(tools).unwrap());
    let server = server.auth(Oidc::issuer(&issuer.url));
    let function = function(server.list_only_callable_tools());
    let oxp = |id: &str| ("/tools/call", oxp(id));
    let opentool = |name: &str| ("/opentool/call", opentool(name));
    let open = "did you mean Vault.Open?";
    let read = "did you mean Mail.Read?";
    let mcp_open = ("/mcp", mcp("Vault_Opens"));
    let versions = ("available: 1.0.0, 2.0.0", "available: 1.0.0");
    // A request, and the names in its answer: for a caller who sees the tool, and for one who does
    // not.
    for ((path, body), seen, unseen) in [
        (oxp("Vault.Opens"), open, ""),
        (oxp("Vault_Open"), open, ""),
        (oxp("Vault_Opens"), open, ""),
        (mcp_open, "did you mean Vault_Open?", ""),
        (opentool("Vault_Opens"), "did you mean 'Vault_Open'?", ""),
        (oxp("Who.AmI@3"), versions.0, versions.1),
        (oxp("Vault.Open@3"), "available: 1.0.0", ""),
        (oxp("Mail.Reads"), read, read),
    ] {
        for (scopes, names) in [("mail.read admin", seen), ("mail.read", unseen)] {
            let (_, answer, _) = post(&function, path, &token(&issuer, scopes), &body).await;
            let answer = answer.to_string();
            for text in ["did you mean", "available: "] {
                let said = answer.split_once(text).map(|(_, rest)| rest);
                let said = said.and_then(|rest| rest.split('"').next());
                let expected = names.strip_prefix(text).filter(|it| !it.is_empty());
                assert_eq!(said, expected, "{scopes} {body} {answer}");
            }
        }
    }
    let token = token(&issuer, "mail.read");
    let (_, answer, _) = post(&function, "/mcp", &token, &mcp("Vault_Open")).await;
    assert_eq!(answer["error"]["code"], 403, "{answer}");
}
