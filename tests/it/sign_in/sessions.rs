//! Codes, access tokens and refresh tokens: how long they live, and what ends them.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::*;

const DAY: u64 = 24 * 3600;

#[tokio::test(flavor = "multi_thread")]
async fn refresh_tokens_rotate_and_a_lost_response_is_repeated() {
    let server = Server::start().await;
    let (client, first) = server.tokens(&alice()).await;
    // A client that has not got the response sends its token again, here several times at once.
    let answers = join_all((0..6).map(|_| server.refresh(&client, &first))).await;
    let successors = answers.iter().map(|(status, answer)| {
        assert_eq!(*status, 200, "{answer}");
        text(answer, "refresh_token")
    });
    let successors: BTreeSet<_> = successors.collect();
    assert_eq!(successors.len(), 1, "{answers:?}");
    assert!(!successors.contains(text(&first, "refresh_token")));
    // The scopes are those of the session, whatever a refresh asks for.
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", &client),
        ("refresh_token", text(&answers[0].1, "refresh_token")),
        ("scope", "mail.read mail.send"),
    ];
    let (status, third) = server.post_form("token", &fields).await;
    assert_eq!(status, 200, "{third}");
    assert_eq!(third["scope"], "mail.read");
    let whose = server.whose(&third).await;
    assert_eq!(whose["user"], "alice");
    assert_eq!(whose["scopes"], json!(["mail.read"]));
    // Whoever has an old one has stolen it, or the newest one has been stolen.
    for stolen in [&first, &third] {
        assert_invalid(&server.refresh(&client, stolen).await);
    }
}

/// RFC 8707, 2.2: a refresh may name the resource of its session, and no other one.
#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_is_for_the_resource_of_its_session() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens(&alice()).await;
    let [own, evil] = ["/mcp", ".evil.example"].map(|end| format!("{}{end}", server.url));
    for (resource, error) in [
        ("https://other.example/mcp", Some("invalid_target")),
        (&*evil, Some("invalid_target")),
        (&*own, None),
    ] {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", &*client),
            ("refresh_token", text(&tokens, "refresh_token")),
            ("resource", resource),
        ];
        let (_, answer) = server.post_form("token", &fields).await;
        assert_eq!(answer["error"].as_str(), error, "{resource} {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_works_once_for_a_minute_and_its_reuse_ends_the_session() {
    let (server, client) = Server::with_client().await;
    let late = server.code(&client, &alice()).await;
    server.later(Duration::from_secs(61));
    assert_invalid(&server.redeem(&client, &late, &[]).await);
    let code = server.code(&client, &alice()).await;
    let answers = join_all((0..8).map(|_| server.redeem(&client, &code, &[]))).await;
    let (succeeded, others): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.0 == 200);
    let [(_, tokens)] = succeeded[..] else {
        panic!("{answers:?}");
    };
    others.into_iter().for_each(assert_invalid);
    assert_invalid(&server.refresh(&client, tokens).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_end_its_session() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens(&alice()).await;
    let other = server.registered(CALLBACK).await;
    let revoke = async |client: &str, token: &str| {
        let fields = [("token", token), ("client_id", client)];
        server.post_form("revoke", &fields).await
    };
    let token = text(&tokens, "refresh_token");
    assert_eq!(revoke(&other, token).await.0, 400);
    assert_eq!(revoke(&client, "unknown").await.0, 200);
    let (status, tokens) = server.refresh(&client, &tokens).await;
    assert_eq!(status, 200, "still valid: {tokens}");
    assert_eq!(revoke(&client, text(&tokens, "refresh_token")).await.0, 200);
    assert_invalid(&server.refresh(&client, &tokens).await);
    let (status, answer) = revoke(&client, text(&tokens, "access_token")).await;
    let seen = (status, text(&answer, "error"));
    assert_eq!(seen, (400, "unsupported_token_type"));
}

/// One consent serves both: a tool that needs the user's token at the provider finds it. Without a
/// refresh token of the provider, the client gets none.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_finds_the_token_that_the_sign_in_has_brought() {
    let server = Server::start().await;
    server.change_upstream(|it| {
        it.tokens = |body| {
            let mut tokens = upstream_tokens(body);
            tokens["access_token"] = "upstream-access".into();
            tokens.as_object_mut().unwrap().remove("refresh_token");
            tokens
        };
    });
    let (_, tokens) = server.tokens(&alice()).await;
    assert!(tokens["refresh_token"].is_null(), "{tokens}");
    let token = text(&tokens, "access_token");
    let (status, answer) = server.call("Mail.Upstream", token).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["value"], "upstream-access");
}

/// All of a session's refresh tokens together last for 30 days from the sign-in.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_without_use_and_with_its_longest_life() {
    // The times between uses, in seconds. After them, the session has ended.
    for (uses, end) in [(&[15 * DAY, 15 * DAY - 60][..], 61), (&[], 30 * DAY + 1)] {
        let server = Server::start().await;
        let (client, mut tokens) = server.tokens(&alice()).await;
        for time in uses {
            server.later(Duration::from_secs(*time));
            let (status, answer) = server.refresh(&client, &tokens).await;
            assert_eq!(status, 200, "{time} {answer}");
            tokens = answer;
        }
        server.later(Duration::from_secs(end));
        assert_invalid(&server.refresh(&client, &tokens).await);
        // The user signs in again. An access token lasts for half an hour.
        let code = server.code(&client, &alice()).await;
        let tokens = server.redeemed(&client, &code).await;
        assert_eq!(server.whose(&tokens).await["user"], "alice");
        server.later(Duration::from_secs(1800 + 61));
        let token = text(&tokens, "access_token");
        assert_eq!(server.call("Mail.Whose", token).await.0, 401);
    }
}

/// Lets a member of a group sign in, changes the provider, and refreshes. If the user is confirmed,
/// the new token has these groups, and otherwise the session has ended, or the provider is not
/// available.
async fn check_refresh(
    server: &Server,
    change: impl FnOnce(&mut Behaviour),
    expected: u16,
    groups: &Value,
) {
    let claims = json!({"sub": "1", "oid": "alice", "groups": ["staff"]});
    let (client, tokens) = server.tokens(&claims).await;
    server.change_upstream(change);
    let (status, answer) = server.refresh(&client, &tokens).await;
    assert_eq!(status, expected, "{groups} {answer}");
    if status == 200 {
        // They are kept for a token that is sent again.
        for answer in [answer, server.refresh(&client, &tokens).await.1] {
            let whose = server.whose(&answer).await;
            assert_eq!(whose["user"], "alice");
            assert_eq!(whose["groups"], *groups);
        }
    }
    server.change_upstream(|it| {
        it.tokens = upstream_tokens;
        it.id_token = None;
    });
    if status != 200 {
        // What has ended does not begin again, and what has not goes on.
        let again = if expected == 503 { 200 } else { 400 };
        let (status, answer) = server.refresh(&client, &tokens).await;
        assert_eq!(status, again, "{groups} {answer}");
    }
}

/// Asks the provider at each refresh whether the user is still the same and may still sign in: its
/// ID token says so, or without one, the userinfo endpoint (OpenID Connect Core 1.0, 5.3), which is
/// asked with the newest token.
#[tokio::test(flavor = "multi_thread")]
async fn each_refresh_asks_the_provider_who_the_user_is() {
    let server = Server::with(|it| it.allow("group:staff").user_claim("oid")).await;
    server.change_upstream(|it| it.userinfo = Some((500, json!({}))));
    let invalid: fn(&str) -> Value = |_| json!({"error": "invalid_grant"});
    let unavailable: fn(&str) -> Value = |_| json!({"error": "temporarily_unavailable"});
    for (tokens, expected) in [(invalid, 400), (unavailable, 503)] {
        let change = |it: &mut Behaviour| it.tokens = tokens;
        check_refresh(&server, change, expected, &json!("error")).await;
    }
    for (expected, claims) in [
        (200, json!({"groups": ["staff", "new"]})),
        (400, json!({"groups": ["other"]})),
        (400, json!({"sub": "mallory"})),
        (400, json!({"oid": "mallory"})),
    ] {
        let id_token = Some(claims.clone());
        let change = |it: &mut Behaviour| it.id_token = id_token;
        check_refresh(&server, change, expected, &claims["groups"]).await;
    }
    let staff = json!({"sub": "1", "groups": ["staff"]});
    let with_id = |id| json!({"sub": "1", "oid": id, "groups": ["staff"]});
    for (status, expected, userinfo) in [
        (200, 200, staff.clone()),
        (200, 200, with_id("alice")),
        (200, 200, json!({"sub": "1", "groups": ["staff", "new"]})),
        (200, 400, with_id("mallory")),
        (200, 400, json!({"sub": "1", "groups": ["other"]})),
        (200, 400, json!({"sub": "1"})),
        // 5.3.2: it must not be used for anyone else.
        (200, 400, json!({"sub": "2", "groups": ["staff"]})),
        (200, 400, json!({"groups": ["staff"]})),
        (200, 400, json!({"sub": "", "groups": ["staff"]})),
        (200, 400, json!(["1"])),
        (401, 400, staff.clone()),
        (500, 503, staff.clone()),
        (429, 503, staff.clone()),
        (302, 503, staff),
    ] {
        let groups = userinfo["groups"].clone();
        let change = |it: &mut Behaviour| {
            it.tokens = without_id_token;
            it.userinfo = Some((status, userinfo));
        };
        check_refresh(&server, change, expected, &groups).await;
    }
}

/// Two clients of a user refresh at once: the provider's ID token comes to one of them, and userinfo
/// names no groups, as Cognito's does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_the_refresh_of_another_one() {
    let server = Server::with(|it| it.allow("group:staff")).await;
    server.change_upstream(|it| it.userinfo = Some((200, alice())));
    let claims = json!({"sub": "alice", "groups": ["staff"]});
    let (first, second) = (server.tokens(&claims).await, server.tokens(&claims).await);
    let issuing = server.upstream.issuing.lock().await;
    let refresh = async |(client, tokens): &(String, Value)| server.refresh(client, tokens).await;
    let release = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(issuing);
    };
    let (one, other, ()) = tokio::join!(refresh(&first), refresh(&second), release);
    let mut answers = [(one, &first), (other, &second)];
    answers.sort_by_key(|it| it.0.0);
    let [((status, tokens), _), ((refused, _), member)] = answers;
    // Nobody has confirmed the groups of the second one, which tries again and loses nothing.
    assert_eq!((status, refused), (200, 503));
    let requests = server.upstream.behaviour().token_requests;
    assert_eq!(requests, 3, "one refresh for both");
    let (status, again) = refresh(member).await;
    assert_eq!(status, 200, "{again}");
    for tokens in [tokens, again] {
        assert_eq!(server.whose(&tokens).await["groups"], json!(["staff"]));
    }
}
