//! Rules about who may call a tool: at every door, and at the start.

use std::sync::Mutex;

use lambda_tools::{AgentCoreUser, ApiKeys, EventKind, idempotency::Idempotency};
use test_support::{Running, mcp::modern, program};

use super::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn tools() -> Toolkit {
    let delete = |id: &'static str| Tool::new(id, who_am_i).description("Deletes.");
    Toolkit::new([
        delete("Orders.Delete@1.0.0").allow(["group:admins"]),
        delete("Orders.Clear@1.0.0")
            .allow(["group:admins"])
            .background(),
        Tool::new("Who.AmI@1.0.0", who_am_i),
    ])
    .unwrap()
}

/// A function whose tools are for admins, and the tokens of one of them and of somebody else.
struct Fixture {
    function: LambdaFunction,
    issuer: Issuer,
    tasks: std::sync::Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    async fn new() -> Self {
        let issuer = Issuer::start().await;
        let tasks = std::sync::Arc::<Mutex<Vec<String>>>::default();
        let queue = std::sync::Arc::clone(&tasks);
        let server = support::server(tools())
            .auth(Oidc::issuer(&issuer.url))
            .public_url(URL)
            .events([EventKind::HttpApi, EventKind::Direct, EventKind::AgentCore])
            .agentcore_user(AgentCoreUser::Token("x-token".try_into().unwrap()))
            .idempotency(Idempotency::in_memory())
            .serve_openapi(true)
            .list_only_callable_tools()
            .tasks(true)
            .task_after(std::time::Duration::ZERO)
            .on_task(move |event| queue.lock().unwrap().push(event));
        Self {
            function: function(server),
            issuer,
            tasks,
        }
    }

    /// Returns the token of the same user, in a group.
    fn token(&self, group: &str) -> String {
        self.issuer.token_with(&json!({"groups": [group]}))
    }

    async fn post(&self, path: &str, token: &str, body: &Value) -> ExpectedResponse {
        let mut event = event("POST", path, Some(token), body);
        event["headers"]["accept"] = "application/json, text/event-stream".into();
        respond(&self.function, &event).await
    }

    /// Sends a request of an MCP client that takes tasks.
    async fn mcp(&self, token: &str, method: &str, params: Value) -> Value {
        let (headers, body) = modern(method, params, json!({"extensions": {TASKS: {}}}));
        let mut event = event("POST", "/mcp", Some(token), &body);
        for (name, value) in headers {
            event["headers"][name] = value.into();
        }
        respond(&self.function, &event).await.body
    }
}

/// `events/access` has the other doors. The tool returns the groups of its caller, and nothing else names
/// them.
#[tokio::test]
async fn every_door_asks_the_rules() {
    let fixture = Fixture::new().await;
    let (admin, other) = (fixture.token("admins"), fixture.token("guests"));
    let call = json!({"tool_id": "Orders.Delete", "call_id": "1", "input": {}});
    // Whoever has left the group gets no replay, either.
    for (token, is_allowed) in [(&other, false), (&admin, true), (&other, false)] {
        let reply = fixture.post("/call", token, &call).await.body.to_string();
        assert_eq!(reply.contains("admins"), is_allowed, "{reply}");
    }
    // An invoker has no name.
    let invoked = fixture.function.invoke(&call.to_string()).await;
    let invoked = invoked.unwrap().to_string();
    assert!(invoked.contains("may not call"), "{invoked}");
    for (token, is_allowed) in [(&admin, true), (&other, false)] {
        let headers = json!({"x-token": format!("Bearer {token}")});
        let context = json!({"custom": {
            "bedrockAgentCoreToolName": "t___Orders_Delete",
            "bedrockAgentCorePropagatedHeaders": headers,
        }});
        let context = context.to_string();
        let called = fixture.function.invoke_with_context("{}", &context).await;
        let called = called.unwrap().to_string();
        assert_eq!(called.contains("admins"), is_allowed, "{called}");
        assert_eq!(called.contains("may not call"), !is_allowed, "{called}");
    }
}

#[tokio::test]
async fn tasks_are_started_seen_and_cancelled_by_those_who_may_call() {
    let fixture = Fixture::new().await;
    let (admin, other) = (fixture.token("admins"), fixture.token("guests"));
    let start = async |token: &str| {
        let params = json!({"name": "Orders_Clear", "arguments": {}});
        fixture.mcp(token, "tools/call", params).await
    };
    let refused = start(&other).await;
    assert_eq!(refused["error"]["code"], 403, "{refused}");
    assert!(fixture.tasks.lock().unwrap().is_empty());
    for cancelled in [false, true] {
        let id = start(&admin).await["result"]["taskId"].take();
        let id = json!({"taskId": id});
        for method in ["tasks/get", "tasks/cancel"] {
            let seen = fixture.mcp(&other, method, id.clone()).await;
            let is_refused = seen["result"].is_null() && !seen["error"].is_null();
            assert!(is_refused, "{seen}");
        }
        let seen = fixture.mcp(&admin, "tasks/get", id.clone()).await;
        assert_eq!(seen["result"]["status"], "working", "{seen}");
        if cancelled {
            fixture.mcp(&admin, "tasks/cancel", id.clone()).await;
            let seen = fixture.mcp(&admin, "tasks/get", id).await;
            assert_eq!(seen["result"]["status"], "cancelled", "{seen}");
        }
    }
}

/// `scopes.rs` has the other lists.
#[tokio::test]
async fn lists_show_what_the_rules_let_their_reader_call() {
    let fixture = Fixture::new().await;
    for (group, is_shown) in [("admins", true), ("guests", false)] {
        for path in ["/tools", "/openapi.json"] {
            let event = event("GET", path, Some(&fixture.token(group)), &Value::Null);
            let list = respond(&fixture.function, &event).await.body.to_string();
            assert!(list.contains("Who"), "{list}");
            assert_eq!(list.contains("Orders"), is_shown, "{group}: {list}");
        }
        // So does a suggestion.
        let call = json!({"tool_id": "Orders.Deletes", "input": {}});
        let event = event("POST", "/tools/call", Some(&fixture.token(group)), &call);
        let reply = respond(&fixture.function, &event).await.body.to_string();
        let is_suggested = reply.contains("did you mean Orders.Delete?");
        assert_eq!(is_suggested, is_shown, "{group}: {reply}");
    }
}

/// A rule that is added to a tool lets more callers in; one for a pattern keeps callers out.
#[tokio::test]
async fn rules_name_groups_users_and_keys() {
    let issuer = Issuer::start().await;
    let auth = || {
        let jwt = Jwt::with_secret_ids(["SIGNING"]).subject_is_user();
        let auth = Auth::from(Oidc::issuer(&issuer.url)).or(jwt);
        auth.or(ApiKeys::with_ids(["KEY|OTHER_KEY"]))
    };
    let jwt = sign_with_secret(SECRET, &json!({"sub": "alice", "exp": NOW + 60}));
    let alice = issuer.token_with(&json!({"sub": "alice", "groups": ["staff", "night shift"]}));
    let bob = issuer.token_with(&json!({"sub": "bob", "groups": []}));
    let key = "a-key-0123456789".to_owned();
    let callers = [("jwt", jwt), ("alice", alice), ("bob", bob), ("key", key)];
    let (of_alice, of_bob, of_staff) = ("user:alice", "user:bob", "group:staff");
    let all = "jwt alice bob key";
    for (own, limits, allowed) in [
        (&[][..], &[][..], all),
        (&[of_staff], &[], "alice"),
        (&["group: night shift "], &[], "alice"),
        (&["group:Staff"], &[], ""),
        (&[of_alice], &[], "jwt alice"),
        (&[of_bob, "caller:KEY"], &[], "bob key"),
        (&["caller:SIGNING"], &[], "jwt"),
        (&["caller:OTHER_KEY"], &[], ""),
        (&["staff", "user:", ":alice", "groups:staff"], &[], ""),
        (&[], &[("Who.*", of_bob)], "bob"),
        (&[], &[("Who.AmI", of_bob)], "bob"),
        (&[], &[("Who.AmI@1.0.0", of_bob), ("Who.Are*", of_bob)], all),
        // It does not matter in which order limits come.
        (&[], &[("*", of_alice), ("Who.*", of_staff)], "alice"),
        (&[], &[("Who.*", of_staff), ("*", of_alice)], "alice"),
        (&[of_alice], &[("Who.*", of_bob)], ""),
    ] {
        let mut tool = Tool::new("Who.AmI@1.0.0", who_am_i).description("Tells.");
        // Mistakes are found where debug assertions are on; elsewhere, nobody may call.
        let is_mistake = own.contains(&"staff");
        if !own.is_empty() {
            tool = tool.allow(own);
        }
        let toolkit = Toolkit::new([tool]);
        if is_mistake {
            let mistakes = toolkit.unwrap_err().to_string();
            let count = mistakes.matches("a rule is group:NAME").count();
            assert_eq!(count, 4, "{mistakes}");
            continue;
        }
        let limits_of = |auth: Auth, (tools, rule): &(&str, &str)| auth.restrict(*tools, [rule]);
        // On either side of `or`.
        let auth = auth().or(limits.iter().fold(Auth::none(), limits_of));
        let secrets = Secrets::fixed([("KEY", "a-key-0123456789"), ("SIGNING", SECRET)]);
        let server = support::server(toolkit.unwrap())
            .auth(auth)
            .secrets(secrets);
        let function = function(server);
        let mut seen = Vec::new();
        for (name, token) in &callers {
            if super::call(&function, "Who.AmI", token).await.status == 200 {
                seen.push(*name);
            }
        }
        assert_eq!(seen.join(" "), allowed, "{own:?} {limits:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn limited_program_of_tests() {
    test_support::assert_program();
    let tool = Tool::new("Who.AmI@1.0.0", who_am_i).description("Tells.");
    let tool = match std::env::var("RULE") {
        Ok(rule) => tool.allow([rule]),
        Err(_) => tool,
    };
    let mut server = Server::new(Toolkit::new([tool]).unwrap());
    if std::env::var_os("OWN_KEYS").is_some() {
        server = server.auth(ApiKeys::with_ids(["A", "B", "C"]));
    }
    lambda_tools::serve(server).await.unwrap();
}

/// A slip must neither open a tool nor close it for everybody.
#[test]
fn a_server_does_not_start_with_rules_that_apply_to_nobody() {
    for row in [
        "TOOLS_ALLOW=Whom.*=user:a TOOLS_AUTH=gateway | 'Whom.*' matches no tool of this server",
        "TOOLS_ALLOW=Who.AmI@1.0.0=user:a TOOLS_AUTH=gateway | matches no tool",
        "TOOLS_ALLOW=Who.*=admins TOOLS_AUTH=gateway | 'admins' is not a rule",
        "TOOLS_ALLOW=Who.*=user:a,users:b TOOLS_AUTH=gateway | 'users:b' is not a rule",
        "TOOLS_ALLOW=Who.*= TOOLS_AUTH=gateway | '' is not a rule",
        "TOOLS_ALLOW=Who.* TOOLS_AUTH=gateway | TOOLS_ALLOW has 'Who.*', but needs tools and",
        "TOOLS_ALLOW=Who.*=user:a TOOLS_AUTH=none | 'user:a' applies to nobody",
        "TOOLS_ALLOW=Who.*=group:a TOOLS_AUTH=api-key | 'group:a' applies to nobody",
        "TOOLS_ALLOW=Who.*=user:a TOOLS_AUTH=jwt | 'user:a' applies to nobody",
        "TOOLS_ALLOW=Who.*=caller:KEY TOOLS_AUTH=api-key | 'caller:KEY' names no caller",
        "RULE=user:a TOOLS_AUTH=none | 'user:a' applies to nobody",
        "TOOLS_LIST=mine TOOLS_AUTH=none | TOOLS_LIST is 'mine', but must be all or callable",
    ] {
        let (settings, expected) = row.split_once(" | ").unwrap();
        let settings = settings.split(' ').map(|it| it.split_once('=').unwrap());
        let mut program = program("oidc::allowed::limited_program_of_tests");
        let text = support::failed_start(program.envs(settings));
        assert!(text.contains(expected), "{row}: {text}");
    }
}

/// Also that of a program whose callers no setting names.
#[tokio::test]
async fn the_setting_keeps_callers_out() {
    for own_keys in [false, true] {
        let mut program = program("oidc::allowed::limited_program_of_tests");
        program.envs([
            ("A", "the-key-of-caller-a"),
            ("B", "the-key-of-caller-b"),
            ("C", "the-key-of-caller-c"),
            ("TOOLS_ALLOW", " Who.* = caller:A , caller:C ; ; *=caller:A"),
            ("TOOLS_LIST", "callable"),
        ]);
        if own_keys {
            program.env("OWN_KEYS", "1");
        } else {
            program.env("TOOLS_AUTH", "api-key");
            program.env("TOOLS_API_KEY_IDS", "A,B,C");
        }
        let (_running, url) = Running::serving(&mut program);
        let client = reqwest::Client::new();
        for (key, is_allowed) in [("a", true), ("b", false), ("c", false)] {
            let list = client.get(format!("{url}/tools"));
            let list = list.bearer_auth(format!("the-key-of-caller-{key}")).send();
            let list = list.await.unwrap().text().await.unwrap();
            assert_eq!(list.contains("Who.AmI"), is_allowed, "{key}: {list}");
        }
    }
}
