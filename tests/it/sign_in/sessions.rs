//! Codes, access tokens and refresh tokens: how long they live, and what ends them.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use test_support::issuer::Userinfo;

use super::{Browser, CALLBACK, Server, parameter, upstream_tokens, upstream_tokens_with};

fn text(tokens: &Value, name: &str) -> String {
    let text = tokens[name].as_str();
    text.unwrap_or_else(|| panic!("{name} {tokens}")).to_owned()
}

#[track_caller]
fn assert_invalid((status, answer): &(u16, Value)) {
    let invalid = (400, &json!("invalid_grant"));
    assert_eq!((*status, &answer["error"]), invalid, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refresh_tokens_rotate_and_a_lost_response_is_repeated() {
    let server = Server::start().await;
    let (client, first) = server.tokens("alice").await;
    let first = text(&first, "refresh_token");
    // A client that has not got the response sends its token again, here several times at once.
    let requests = (0..6).map(|_| server.refresh(&client, &first));
    let answers = futures_util::future::join_all(requests).await;
    let successors: BTreeSet<_> = answers
        .iter()
        .map(|(status, answer)| (*status, text(answer, "refresh_token")))
        .collect();
    let [(200, second)] = &successors.iter().collect::<Vec<_>>()[..] else {
        panic!("{answers:?}");
    };
    assert_ne!(*second, first);
    let (status, third) = server.refresh(&client, second).await;
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
        assert_invalid(&server.refresh(&client, stolen).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_works_once_for_a_minute_and_its_reuse_ends_the_session() {
    let server = Server::start().await;
    let client = server.registered(CALLBACK).await;
    let late = server.code(&client, "alice").await;
    server.later(Duration::from_secs(61));
    assert_invalid(&server.redeem(&client, &late).await);
    let code = server.code(&client, "alice").await;
    let (status, tokens) = server.redeem(&client, &code).await;
    assert_eq!(status, 200, "{tokens}");
    assert_invalid(&server.redeem(&client, &code).await);
    let token = text(&tokens, "refresh_token");
    assert_invalid(&server.refresh(&client, &token).await);
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
            let mut tokens = upstream_tokens(body);
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
    assert_invalid(&listed.refresh(&client, &token).await);
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
        it.tokens = |body| upstream_tokens_with(body, &json!({"groups": ["staff"]}));
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
    let mut tokens = upstream_tokens(body);
    tokens["access_token"] = "newest".into();
    tokens.as_object_mut().unwrap().remove("id_token");
    tokens
}

/// The provider's tokens, and its userinfo.
type Provider = (fn(&str) -> Value, Option<Userinfo>);

/// Returns a provider that has only tokens.
fn issues(tokens: fn(&str) -> Value) -> Provider {
    (tokens, None)
}

/// Returns what the provider says in a refresh without an ID token. It is asked with the newest
/// token.
fn says(userinfo: Userinfo) -> Provider {
    (without_id_token, Some(userinfo))
}

/// Asks the provider at each refresh whether the user is still the same and may still sign in.
/// OpenID Connect Core 1.0, 5.3: without an ID token, the userinfo endpoint says so.
#[tokio::test(flavor = "multi_thread")]
async fn each_refresh_asks_the_provider_who_the_user_is() {
    let cases: [(Provider, u16); 20] = [
        (issues(|_| json!({"error": "invalid_grant"})), 400),
        (issues(|_| json!({"error": "temporarily_unavailable"})), 503),
        (
            issues(|body| upstream_tokens_with(body, &json!({"sub": "mallory"}))),
            400,
        ),
        (
            issues(|body| upstream_tokens_with(body, &json!({"groups": ["other"]}))),
            400,
        ),
        (
            says(|_| (200, json!({"sub": "1", "groups": ["staff"]}))),
            200,
        ),
        (
            says(|_| {
                (
                    200,
                    json!({"sub": "1", "oid": "alice", "groups": ["staff", "new"]}),
                )
            }),
            200,
        ),
        (
            says(|_| {
                (
                    200,
                    json!({"sub": "1", "oid": "mallory", "groups": ["staff"]}),
                )
            }),
            400,
        ),
        (
            says(|_| (200, json!({"sub": "1", "groups": ["other"]}))),
            400,
        ),
        (says(|_| (200, json!({"sub": "1", "groups": []}))), 400),
        (says(|_| (200, json!({"sub": "1"}))), 400),
        // 5.3.2: it must not be used for anyone else.
        (
            says(|_| (200, json!({"sub": "2", "groups": ["staff"]}))),
            400,
        ),
        (says(|_| (200, json!({"groups": ["staff"]}))), 400),
        (
            says(|_| (200, json!({"sub": "", "groups": ["staff"]}))),
            400,
        ),
        (says(|_| (200, json!(["1"]))), 400),
        (says(|_| (401, json!({"error": "invalid_token"}))), 400),
        (says(|_| (403, json!({}))), 400),
        (says(|_| (500, json!({}))), 503),
        (says(|_| (429, json!({}))), 503),
        (says(|_| (302, json!({}))), 503),
        (
            says(|credentials| match credentials {
                "Bearer newest" => (200, json!({"sub": "1", "groups": ["staff"]})),
                _ => (401, json!({})),
            }),
            200,
        ),
    ];
    for (number, ((tokens_of, userinfo), expected)) in cases.into_iter().enumerate() {
        let server = Server::with(|it| it.allow("group:staff").user_claim("oid")).await;
        server.upstream.change(|it| it.userinfo = userinfo);
        let claims = json!({"sub": "1", "oid": "alice", "groups": ["staff"]});
        let (client, tokens) = member(&server, &claims).await;
        let token = text(&tokens, "refresh_token");
        server.upstream.change(|it| it.tokens = tokens_of);
        let (status, answer) = server.refresh(&client, &token).await;
        assert_eq!(status, expected, "{number} {answer}");
        if status == 200 {
            let (_, said) = server.whose(&text(&answer, "access_token")).await;
            let groups = userinfo.map(|it| it("Bearer newest").1["groups"].clone());
            assert_eq!(said["user"], "alice");
            assert_eq!(Some(&said["groups"]), groups.as_ref());
            continue;
        }
        // What has ended does not begin again, and what has not goes on.
        server.upstream.change(|it| {
            it.tokens = upstream_tokens;
            it.userinfo = None;
        });
        let again = if expected == 503 { 200 } else { 400 };
        let (status, answer) = server.refresh(&client, &token).await;
        assert_eq!(status, again, "{number} {answer}");
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
            let mut tokens = upstream_tokens(body);
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
    let (hour, days) = (Duration::from_hours(1), Duration::from_hours(90 * 24));
    for (setting, life) in [
        (None, Duration::from_hours(30 * 24)),
        (Some(hour), hour),
        (Some(days), days),
    ] {
        let server = Server::with(|it| match setting {
            Some(life) => it.allow("anyone").sessions_end_after(life),
            None => it.allow("anyone"),
        });
        let server = server.await;
        let (client, mut tokens) = server.tokens("alice").await;
        let refresh = async |tokens: &Value| {
            server
                .refresh(&client, &text(tokens, "refresh_token"))
                .await
        };
        let quarter = life / 4;
        for time in [
            quarter,
            quarter,
            quarter,
            quarter.saturating_sub(Duration::from_secs(30)),
        ] {
            server.later(time);
            let (status, answer) = refresh(&tokens).await;
            assert_eq!(status, 200, "{life:?} {answer}");
            tokens = answer;
        }
        server.later(Duration::from_secs(31));
        assert_invalid(&refresh(&tokens).await);
        // The user signs in again.
        let code = server.code(&client, "alice").await;
        assert_eq!(server.redeem(&client, &code).await.0, 200);
    }
}
