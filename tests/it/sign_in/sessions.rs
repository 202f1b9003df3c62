//! Codes, access tokens and refresh tokens: how long they live, and what ends them.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Browser, CALLBACK, Server, parameter};

fn text(tokens: &Value, name: &str) -> String {
    let text = tokens[name].as_str();
    text.unwrap_or_else(|| panic!("{name} {tokens}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn refresh_tokens_rotate_and_a_lost_response_is_repeated() {
    let server = Server::start().await;
    let (client, first) = server.tokens("alice").await;
    let first = text(&first, "refresh_token");
    let (status, second) = server.refresh(&client, &first).await;
    assert_eq!(status, 200, "{second}");
    let second = text(&second, "refresh_token");
    assert_ne!(first, second);
    // The client has not got the response, and sends its token again.
    let (status, again) = server.refresh(&client, &first).await;
    assert_eq!(
        (status, text(&again, "refresh_token")),
        (200, second.clone())
    );
    let (status, third) = server.refresh(&client, &second).await;
    assert_eq!(status, 200, "{third}");
    let (status, said) = server.whose(&text(&third, "access_token")).await;
    assert_eq!((status, &said["user"]), (200, &json!("alice")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_refresh_token_ends_the_session() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let first = text(&tokens, "refresh_token");
    let second = text(&server.refresh(&client, &first).await.1, "refresh_token");
    let third = text(&server.refresh(&client, &second).await.1, "refresh_token");
    for stolen in [&first, &third] {
        let (status, answer) = server.refresh(&client, stolen).await;
        assert_eq!(
            (status, &answer["error"]),
            (400, &json!("invalid_grant")),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_works_once_and_its_reuse_ends_the_session() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let code = server.code(&client, "alice").await;
    let (status, tokens) = server.redeem(&client, &code).await;
    assert_eq!(status, 200, "{tokens}");
    let (status, answer) = server.redeem(&client, &code).await;
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")));
    let (status, answer) = server
        .refresh(&client, &text(&tokens, "refresh_token"))
        .await;
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_requests_with_one_code_one_succeeds() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let code = server.code(&client, "alice").await;
    let requests = (0..8).map(|_| server.redeem(&client, &code));
    let answers = futures_util::future::join_all(requests).await;
    let succeeded = answers.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!(succeeded, 1, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_refreshes_with_one_token_all_get_the_same_successor() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let token = text(&tokens, "refresh_token");
    let requests = (0..6).map(|_| server.refresh(&client, &token));
    let answers = futures_util::future::join_all(requests).await;
    let successors: std::collections::BTreeSet<_> = answers
        .iter()
        .map(|(status, answer)| (*status, text(answer, "refresh_token")))
        .collect();
    assert_eq!(successors.len(), 1, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn someone_who_has_left_cannot_refresh() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    // From now on, the provider knows nobody.
    server
        .upstream
        .change(|it| it.tokens = |_| json!({"error": "invalid_grant"}));
    let (status, answer) = server
        .refresh(&client, &text(&tokens, "refresh_token"))
        .await;
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")));
    // The session has ended, even if the provider changes its mind.
    server
        .upstream
        .change(|it| it.tokens = super::upstream_tokens);
    let (status, _) = server
        .refresh(&client, &text(&tokens, "refresh_token"))
        .await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_answer_ends_no_session() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let token = text(&tokens, "refresh_token");
    server
        .upstream
        .change(|it| it.tokens = |_| json!({"error": "temporarily_unavailable"}));
    let (status, answer) = server.refresh(&client, &token).await;
    assert_eq!(status, 503, "{answer}");
    server
        .upstream
        .change(|it| it.tokens = super::upstream_tokens);
    let (status, answer) = server.refresh(&client, &token).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_must_still_be_the_same_and_allowed_at_each_refresh() {
    let changed: [fn(&str) -> Value; 2] = [
        |body| super::upstream_tokens_with(body, &json!({"sub": "mallory"})),
        |body| super::upstream_tokens_with(body, &json!({"groups": ["other"]})),
    ];
    for changed in changed {
        let server = Server::with(|it| it.allow("group:staff")).await;
        let client = server.registered(CALLBACK).await;
        let url = server.authorize_url(&client, &[]);
        let claims = json!({"sub": "alice", "groups": ["staff"]});
        let landed = Browser::new().sign_in_with(&url, &claims).await;
        let code = parameter(&landed, "code").unwrap();
        let (_, tokens) = server.redeem(&client, &code).await;
        server.upstream.change(|it| it.tokens = changed);
        let (status, answer) = server
            .refresh(&client, &text(&tokens, "refresh_token"))
            .await;
        assert_eq!(
            (status, &answer["error"]),
            (400, &json!("invalid_grant")),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_end_its_session() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let token = text(&tokens, "refresh_token");
    let other = server.registered(CALLBACK).await;
    for (client_id, token, status) in [(&*other, &*token, 400), (&*client, "unknown", 200)] {
        let fields = [("token", token), ("client_id", client_id)];
        assert_eq!(server.post_form("revoke", &fields).await.0, status);
    }
    let (status, second) = server.refresh(&client, &token).await;
    assert_eq!(status, 200, "still valid: {second}");
    let token = text(&second, "refresh_token");
    let fields = [("token", &*token), ("client_id", &client)];
    assert_eq!(server.post_form("revoke", &fields).await.0, 200);
    assert_eq!(server.refresh(&client, &token).await.0, 400);
    let access = text(&second, "access_token");
    let fields = [("token", &*access), ("client_id", &client)];
    let (status, answer) = server.post_form("revoke", &fields).await;
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("unsupported_token_type"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_refresh_token_of_the_provider_there_is_none() {
    let server = Server::start().await;
    server.upstream.change(|it| {
        it.tokens = |body| {
            let mut tokens = super::upstream_tokens(body);
            tokens.as_object_mut().unwrap().remove("refresh_token");
            tokens
        };
    });
    let (_, tokens) = server.tokens("alice").await;
    assert!(tokens["refresh_token"].is_null(), "{tokens}");
}

/// Of the clients that have signed users in, only those on the owner's list go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_no_longer_listed_cannot_refresh() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let listed = server
        .again(|it| it.allow("anyone").client("other.example"))
        .await;
    let token = text(&tokens, "refresh_token");
    let (status, answer) = listed.refresh(&client, &token).await;
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("invalid_grant")),
        "{answer}"
    );
    assert_eq!(server.refresh(&client, &token).await.0, 200);
}

/// One consent serves both: a tool that needs the user's token at the provider finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_finds_the_token_that_the_sign_in_has_brought() {
    let server = Server::start().await;
    let (_, tokens) = server.tokens("alice").await;
    let access = text(&tokens, "access_token");
    let request = reqwest::Client::new().post(format!("{}/tools/call", server.url));
    let request = request
        .bearer_auth(access)
        .body(r#"{"tool_id": "Mail.Upstream"}"#);
    let (status, answer) = super::answer_of(request.send().await.unwrap()).await;
    assert_eq!(
        (status, &answer["value"]),
        (200, &json!("upstream-access")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_expire_after_a_minute() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let code = server.code(&client, "alice").await;
    server.later(Duration::from_secs(61));
    let (status, answer) = server.redeem(&client, &code).await;
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("invalid_grant")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_before_the_current_one_ends_the_session_after_a_minute() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    let first = text(&tokens, "refresh_token");
    let second = text(&server.refresh(&client, &first).await.1, "refresh_token");
    server.later(Duration::from_secs(61));
    assert_eq!(server.refresh(&client, &first).await.0, 400);
    assert_eq!(server.refresh(&client, &second).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lasts_for_thirty_days_without_use_and_its_tokens_for_half_an_hour() {
    let server = Server::start().await;
    let (client, tokens) = server.tokens("alice").await;
    server.later(Duration::from_hours(29 * 24));
    let (status, tokens) = server
        .refresh(&client, &text(&tokens, "refresh_token"))
        .await;
    assert_eq!(status, 200, "{tokens}");
    let access = text(&tokens, "access_token");
    assert_eq!(server.whose(&access).await.0, 200);
    server.later(Duration::from_secs(1800 + 61));
    assert_eq!(server.whose(&access).await.0, 401);
    server.later(Duration::from_hours(30 * 24));
    assert_eq!(
        server
            .refresh(&client, &text(&tokens, "refresh_token"))
            .await
            .0,
        400
    );
}

/// Instances are killed at each write of the flow, before and after it is carried out, and started
/// again. The client and the browser repeat what got no answer.
#[tokio::test(flavor = "multi_thread")]
async fn instances_that_are_killed_lose_no_session_that_was_confirmed() {
    let (mut kills, mut write) = (0, 0);
    loop {
        write += 1;
        let mut killed = false;
        for is_carried_out in [false, true] {
            let server = Server::start().await;
            let client = server.registered(CALLBACK).await;
            server.store.kill_at(write, is_carried_out);
            let context = format!("write {write}, {is_carried_out}");
            let tokens = flow(&server, &client, &mut killed).await;
            let (status, said) = server.whose(&text(&tokens, "access_token")).await;
            assert_eq!((status, &said["user"]), (200, &json!("alice")), "{context}");
            let (status, answer) = refresh(&server, &client, &tokens, &mut killed).await;
            assert_eq!(status, 200, "{context} {answer}");
            assert_eq!(
                server
                    .refresh(&client, &text(&answer, "refresh_token"))
                    .await
                    .0,
                200
            );
            server.store.restart();
        }
        kills += usize::from(killed);
        if !killed {
            break;
        }
    }
    // The sign-in, its end, the grant, the session, its tokens, and the writes of the refresh.
    assert!(kills >= 8, "{kills}");
}

/// Signs alice in and gets tokens, from the beginning again after each kill.
async fn flow(server: &Server, client: &str, killed: &mut bool) -> Value {
    for _ in 0..3 {
        let (browser, url) = (Browser::new(), server.authorize_url(client, &[]));
        let (_, page) = browser.open(url.as_str()).await;
        let form = test_support::openid::form_in(&page).unwrap();
        let (status, provider) = browser.submit(&url, form, "continue").await;
        if status == 303 {
            let provider = provider.parse().unwrap();
            let callback = super::callback_of(&provider, &json!({"sub": "alice"}));
            let (_, landed) = browser.open(callback.as_str()).await;
            // The browser opens the page again, which has been used up, or not.
            let again = browser.open(callback.as_str()).await;
            assert!(again.0 >= 400 || landed.contains("error=") || !landed.starts_with("http"));
            let landed = landed.parse().ok();
            if let Some(code) = landed.and_then(|it| parameter(&it, "code")) {
                let (status, tokens) = server.redeem(client, &code).await;
                if status == 200 {
                    return tokens;
                }
            }
        }
        *killed |= server.store.restart();
    }
    panic!("the user cannot sign in");
}

/// Refreshes, again with the same token after a kill.
async fn refresh(server: &Server, client: &str, tokens: &Value, killed: &mut bool) -> (u16, Value) {
    let token = text(tokens, "refresh_token");
    let first = server.refresh(client, &token).await;
    *killed |= server.store.restart();
    if first.0 == 200 {
        return first;
    }
    assert_eq!(first.0, 503, "{first:?}");
    // The lease of a refresh that was killed.
    server.later(Duration::from_secs(21));
    server.refresh(client, &token).await
}

/// Signs alice in with groups, and returns the client and its tokens.
async fn member(server: &Server, claims: &Value) -> (String, Value) {
    let client = server.registered(CALLBACK).await;
    let url = server.authorize_url(&client, &[]);
    let landed = Browser::new().sign_in_with(&url, claims).await;
    let code = parameter(&landed, "code").unwrap_or_else(|| panic!("{landed}"));
    let (status, tokens) = server.redeem(&client, &code).await;
    assert_eq!(status, 200, "{tokens}");
    (client, tokens)
}

/// The new token has what the provider says now, not what it said when the user signed in.
#[tokio::test(flavor = "multi_thread")]
async fn groups_are_those_of_the_newest_id_token() {
    let server = Server::with(|it| it.allow("group:staff")).await;
    let claims = json!({"sub": "alice", "groups": ["staff", "admin"]});
    let (client, tokens) = member(&server, &claims).await;
    let groups = async |tokens: &Value| server.whose(&text(tokens, "access_token")).await.1;
    assert_eq!(groups(&tokens).await["groups"], json!(["staff", "admin"]));
    server.upstream.change(|it| {
        it.tokens = |body| super::upstream_tokens_with(body, &json!({"groups": ["staff"]}));
    });
    let token = text(&tokens, "refresh_token");
    let (status, tokens) = server.refresh(&client, &token).await;
    assert_eq!(status, 200, "{tokens}");
    assert_eq!(groups(&tokens).await["groups"], json!(["staff"]));
    // They are kept for a token that is sent again.
    let (status, again) = server.refresh(&client, &token).await;
    assert_eq!(status, 200, "{again}");
    assert_eq!(groups(&again).await["groups"], json!(["staff"]));
}

/// OpenID Connect Core 1.0, 12.2: a refresh need not bring an ID token.
fn without_id_token(body: &str) -> Value {
    let mut tokens = super::upstream_tokens(body);
    if body.contains("refresh_token") {
        tokens.as_object_mut().unwrap().remove("id_token");
    }
    tokens
}

/// OpenID Connect Core 1.0, 5.3: the userinfo endpoint says who the user is then.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_a_group_loses_access_without_an_id_token_too() {
    type Userinfo = fn(&str) -> (u16, Value);
    let cases: [(Userinfo, u16); 14] = [
        (|_| (200, json!({"sub": "alice", "groups": ["staff"]})), 200),
        (
            |_| (200, json!({"sub": "alice", "groups": ["staff", "new"]})),
            200,
        ),
        (|_| (200, json!({"sub": "alice", "groups": ["other"]})), 400),
        (|_| (200, json!({"sub": "alice", "groups": []})), 400),
        (|_| (200, json!({"sub": "alice"})), 400),
        // 5.3.2: it must not be used for anyone else.
        (
            |_| (200, json!({"sub": "mallory", "groups": ["staff"]})),
            400,
        ),
        (|_| (200, json!({"groups": ["staff"]})), 400),
        (|_| (200, json!({"sub": "", "groups": ["staff"]})), 400),
        (|_| (200, json!(["alice"])), 400),
        (|_| (401, json!({"error": "invalid_token"})), 400),
        (|_| (403, json!({})), 400),
        (|_| (500, json!({})), 503),
        (|_| (429, json!({})), 503),
        (|_| (302, json!({})), 503),
    ];
    for (number, (userinfo, expected)) in cases.into_iter().enumerate() {
        let server = Server::with(|it| it.allow("group:staff")).await;
        server.upstream.change(|it| {
            it.tokens = without_id_token;
            it.userinfo = Some(userinfo);
        });
        let claims = json!({"sub": "alice", "groups": ["staff"]});
        let (client, tokens) = member(&server, &claims).await;
        let token = text(&tokens, "refresh_token");
        let (status, answer) = server.refresh(&client, &token).await;
        assert_eq!(status, expected, "{number} {answer}");
        if status == 200 {
            let (_, said) = server.whose(&text(&answer, "access_token")).await;
            assert_eq!(said["groups"], userinfo("").1["groups"]);
            continue;
        }
        // What has ended does not begin again, and what has not goes on.
        server.upstream.change(|it| {
            it.userinfo = Some(|_| (200, json!({"sub": "alice", "groups": ["staff"]})));
        });
        let again = if expected == 503 { 200 } else { 400 };
        let (status, answer) = server.refresh(&client, &token).await;
        assert_eq!(status, again, "{number} {answer}");
    }
}

/// It is asked with the token that the refresh has brought.
#[tokio::test(flavor = "multi_thread")]
async fn the_userinfo_endpoint_gets_the_newest_access_token() {
    let server = Server::start().await;
    server.upstream.change(|it| {
        it.tokens = |body| {
            let mut tokens = without_id_token(body);
            if body.contains("refresh_token") {
                tokens["access_token"] = "newest".into();
            }
            tokens
        };
        it.userinfo = Some(|credentials| match credentials {
            "Bearer newest" => (200, json!({"sub": "alice"})),
            _ => (401, json!({})),
        });
    });
    let (client, tokens) = server.tokens("alice").await;
    let token = text(&tokens, "refresh_token");
    let (status, answer) = server.refresh(&client, &token).await;
    assert_eq!(status, 200, "{answer}");
}

/// Userinfo need not have the claim that is the user, but must not name another user.
#[tokio::test(flavor = "multi_thread")]
async fn the_user_stays_the_same_whatever_claim_it_is() {
    type Userinfo = fn(&str) -> (u16, Value);
    let cases: [(Userinfo, u16); 3] = [
        (|_| (200, json!({"sub": "1"})), 200),
        (|_| (200, json!({"sub": "1", "oid": "alice"})), 200),
        (|_| (200, json!({"sub": "1", "oid": "mallory"})), 400),
    ];
    for (userinfo, expected) in cases {
        let server = Server::with(|it| it.allow("user:alice").user_claim("oid")).await;
        server.upstream.change(|it| {
            it.tokens = without_id_token;
            it.userinfo = Some(userinfo);
        });
        let (client, tokens) = member(&server, &json!({"sub": "1", "oid": "alice"})).await;
        let token = text(&tokens, "refresh_token");
        let (status, answer) = server.refresh(&client, &token).await;
        assert_eq!(status, expected, "{answer}");
        if status == 200 {
            let (_, said) = server.whose(&text(&answer, "access_token")).await;
            assert_eq!(said["user"], "alice");
        }
    }
}

/// Two clients of a user refresh at once: the provider's ID token comes to one of them, and userinfo
/// names no groups, as Cognito's does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_the_refresh_of_another_one() {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let server = Server::with(|it| it.allow("group:staff")).await;
    server.upstream.change(|it| {
        it.tokens = |body| {
            let mut tokens = super::upstream_tokens(body);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            tokens["access_token"] = format!("upstream-{number}").into();
            tokens
        };
        it.userinfo = Some(|_| (200, json!({"sub": "alice"})));
    });
    let claims = json!({"sub": "alice", "groups": ["staff"]});
    let (first, second) = (
        member(&server, &claims).await,
        member(&server, &claims).await,
    );
    let issuing = server.upstream.issuing.lock().await;
    let refresh = async |(client, tokens): &(String, Value)| {
        server.refresh(client, &text(tokens, "refresh_token")).await
    };
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
    assert_eq!(NUMBER.load(Ordering::Relaxed), 3, "one refresh for both");
    let (status, again) = refresh(member).await;
    assert_eq!(status, 200, "{again}");
    for tokens in [tokens, again] {
        let (_, said) = server.whose(&text(&tokens, "access_token")).await;
        assert_eq!(said["groups"], json!(["staff"]));
    }
}

/// However often its tokens are used: the limit counts from the sign-in.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_longest_life() {
    type Change = fn(lambda_tools::SignIn) -> lambda_tools::SignIn;
    let day = Duration::from_hours(24);
    let cases: [(Change, Duration); 3] = [
        (|it| it.allow("anyone"), 30 * day),
        (
            |it| {
                it.allow("anyone")
                    .sessions_end_after(Duration::from_hours(1))
            },
            Duration::from_hours(1),
        ),
        (
            |it| {
                it.allow("anyone")
                    .sessions_end_after(Duration::from_hours(90 * 24))
            },
            90 * day,
        ),
    ];
    for (change, life) in cases {
        let server = Server::with(change).await;
        let (client, mut tokens) = server.tokens("alice").await;
        let refresh = async |tokens: &Value| {
            server
                .refresh(&client, &text(tokens, "refresh_token"))
                .await
        };
        for _ in 0..4 {
            server.later(life / 5);
            let (status, answer) = refresh(&tokens).await;
            assert_eq!(status, 200, "{life:?} {answer}");
            tokens = answer;
        }
        server.later((life / 5).saturating_sub(Duration::from_secs(30)));
        let (status, last) = refresh(&tokens).await;
        assert_eq!(status, 200, "{life:?} {last}");
        server.later(Duration::from_secs(31));
        for tokens in [&last, &tokens] {
            let (status, answer) = refresh(tokens).await;
            let invalid = (400, &json!("invalid_grant"));
            assert_eq!((status, &answer["error"]), invalid, "{life:?} {answer}");
        }
        // The user signs in again.
        let code = server.code(&client, "alice").await;
        assert_eq!(server.redeem(&client, &code).await.0, 200);
    }
}
