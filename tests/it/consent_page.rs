//! The pages on which users allow access. The flow starts only with the button of the first one.
//! These tests need no provider.

mod content;
pub(crate) mod local;
#[cfg(feature = "sign-in")]
pub(crate) mod long;
mod states;

use lambda_tools::ServerInfo;

use local::{AUTHORIZE, Local, Setup};

fn acme() -> ServerInfo {
    ServerInfo::new("Acme Assistant", "1.0.0")
        .support_url("mailto:help@acme.example?subject=Access")
}

#[tokio::test]
async fn the_button_leads_to_the_provider() {
    let server = Local::with(Setup::default());
    let id = server.challenge("alice").await;
    let page = server.open(&id).await;
    let cookie = page.header("set-cookie");
    assert!(cookie.starts_with("__Host-authorization-"), "{cookie}");
    let attributes = "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
    assert!(cookie.ends_with(attributes), "{cookie}");
    // The second time, the user has gone back and pressed the button again.
    for _ in 0..2 {
        let redirect = server.press(&id, &page).await;
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
    let server = Local::with(Setup::default());
    let id = server.challenge("alice").await;
    let (page, elsewhere) = (server.open(&id).await, server.open(&id).await);
    let cookie = page.cookie();
    assert_ne!(cookie, elsewhere.cookie());
    let own = format!("form={}", page.form());
    for (what, cookie, body) in [
        ("no field", cookie, ""),
        ("twice", cookie, &*format!("{own}&{own}")),
        ("cut off", cookie, &own[..own.len() - 1]),
        ("another browser's cookie", elsewhere.cookie(), &own),
        ("no text", cookie, "form=%ff%fe"),
    ] {
        let rejection = server.submit(&id, Some(cookie), body).await;
        assert_eq!(rejection.status, 400, "{what}");
        let why = "cannot be used in this browser";
        assert!(rejection.body.contains(why), "{what}");
        assert!(rejection.headers.get("location").is_none(), "{what}");
        assert!(rejection.headers.get("set-cookie").is_none(), "{what}");
    }
    // Fetching the page, as a link preview does, does not start the flow either.
    for method in ["GET", "HEAD"] {
        let path = format!("/authorization/challenges/{id}/start?{own}");
        let headers = [("cookie", cookie)];
        let page = server.send(method, &path, &headers, own.clone()).await;
        assert_eq!(page.status, 200);
        assert!(page.headers.get("location").is_none());
    }
    assert_eq!(server.press(&id, &page).await.status, 303);
}
