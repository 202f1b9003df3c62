//! The pages on which users allow access. The flow starts only with the button of the first one.
//! These tests need no provider.

mod content;
mod local;
#[cfg(feature = "sign-in")]
pub(crate) mod long;
mod states;

use axum::http::Method;
use lambda_tools::ServerInfo;

use local::{AUTHORIZE, Local};

fn acme() -> ServerInfo {
    ServerInfo::new("Acme Assistant", "1.0.0")
        .support_url("mailto:help@acme.example?subject=Access")
}

#[tokio::test]
async fn the_button_leads_to_the_provider() {
    let server = Local::with_two_callers();
    let id = server.challenge("key-of-a-partner", "alice").await;
    let page = server.open(&id).await;
    let cookie = page.header("set-cookie");
    assert!(cookie.starts_with("__Host-authorization-"), "{cookie}");
    let attributes = "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
    assert!(cookie.ends_with(attributes), "{cookie}");
    let body = format!("form={}", page.form());
    // The second time, the user has gone back and pressed the button again.
    for _ in 0..2 {
        let redirect = server.submit(&id, Some(page.cookie()), &body).await;
        assert_eq!((redirect.status, redirect.cookie()), (303, page.cookie()));
        let location = redirect.header("location");
        assert!(location.starts_with(AUTHORIZE), "{location}");
        assert!(location.contains("&prompt=consent"), "{location}");
        assert_eq!(redirect.header("referrer-policy"), "no-referrer");
    }
    assert_eq!(server.status(&id).await, "pending");
}

#[tokio::test]
async fn the_flow_does_not_start_without_the_button() {
    let server = Local::with_two_callers();
    let id = server.challenge("key-of-a-partner", "alice").await;
    let other = server.challenge("key-of-a-partner", "bob").await;
    let (page, same_page_elsewhere, other_page) = (
        server.open(&id).await,
        server.open(&id).await,
        server.open(&other).await,
    );
    let cookie = page.cookie();
    assert_ne!(cookie, same_page_elsewhere.cookie());
    let field = |form: &str| format!("form={form}");
    let own = field(page.form());
    let value = cookie.split_once('=').unwrap().1;
    let other_name = other_page.cookie().split_once('=').unwrap().0;
    let padded = format!("{own}&padding={}", "x".repeat(8 * 1024));
    let large = format!("{own}{}", "x".repeat(8 * 1024));
    for (what, id, cookie, body) in [
        // A form of another site: browsers do not send it with a Lax cookie.
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
            &field(other_page.form()),
        ),
        (
            "another browser's field",
            &id,
            Some(cookie),
            &field(same_page_elsewhere.form()),
        ),
        (
            "another browser's cookie",
            &id,
            Some(same_page_elsewhere.cookie()),
            &own,
        ),
        (
            "another challenge's page",
            &id,
            Some(other_page.cookie()),
            &field(other_page.form()),
        ),
        (
            "another challenge",
            &other,
            Some(&*format!("{other_name}={value}")),
            &own,
        ),
        ("more than a form", &id, Some(cookie), &padded),
        ("a large field", &id, Some(cookie), &large),
        ("no text", &id, Some(cookie), "form=%ff%fe"),
    ] {
        let rejection = server.submit(id, cookie, body).await;
        assert_eq!(rejection.status, 400, "{what}");
        assert!(
            rejection.body.contains("cannot be used in this browser"),
            "{what}"
        );
        assert!(rejection.headers.get("location").is_none(), "{what}");
        assert!(rejection.headers.get("set-cookie").is_none(), "{what}");
    }
    // Fetching the page, as a link preview does, does not start the flow either.
    for method in [Method::GET, Method::HEAD] {
        let path = format!("/authorization/challenges/{id}/start?{own}");
        let headers = [("cookie", cookie)];
        let page = server.send(method, &path, &headers, own.clone()).await;
        assert_eq!(page.status, 200);
        assert!(page.headers.get("location").is_none());
    }
    let redirect = server.submit(&id, Some(cookie), &own).await;
    assert_eq!(redirect.status, 303);
}
