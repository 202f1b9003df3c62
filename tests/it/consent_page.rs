//! The pages on which users allow access: their content, their headers, and that the flow starts only
//! with the button of the first one. These tests need no provider.

pub(crate) mod local;
#[cfg(feature = "sign-in")]
pub(crate) mod long;
mod states;

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::{OAuth, ServerInfo, oauth::Provider};
use sha2::{Digest, Sha256};

use local::{AUTHORIZE, Local, Page, Setup};

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

/// Returns the source for `style-src` that admits the style in the page, and no other.
fn style_source_of(page: &Page) -> String {
    let (_, rest) = page.body.split_once("<style>").unwrap();
    let (style, rest) = rest.split_once("</style>").unwrap();
    assert!(!rest.contains("<style"), "{rest}");
    assert!(style.len() < 3 * 1024, "{}", style.len());
    let hash = BASE64_STANDARD.encode(Sha256::digest(style));
    format!("'sha256-{hash}'")
}

/// Returns the body, whose tags must have no scripts, styles, images or handlers of events.
#[track_caller]
fn body_of(page: &Page) -> &str {
    let (_, body) = page.body.split_once("<body>").unwrap();
    let tags = body.split('<').skip(1);
    for tag in tags.filter_map(|it| it.split_once('>').map(|(tag, _)| tag)) {
        let name = tag.split(' ').next().unwrap();
        let is_forbidden = ["script", "style", "img", "link", "iframe"].contains(&name);
        let mut attributes = [" style=", " src=", " on", "javascript:"].iter();
        let has_forbidden = attributes.any(|it| tag.contains(it));
        assert!(!is_forbidden && !has_forbidden, "{tag}: {body}");
    }
    body
}

#[tokio::test]
async fn every_page_has_the_style_that_its_policy_admits_and_nothing_else() {
    for (name, status, title, page) in states::results(&acme()).await {
        assert_eq!(page.status, status, "{name}");
        check_document(name, &title, "'none'", &page);
        assert_eq!(page.header("referrer-policy"), "no-referrer", "{name}");
        assert!(page.headers.get("set-cookie").is_none(), "{name}");
        assert!(!page.body.contains("<form"), "{name}");
    }
    for (name, status, title, page) in states::starts(&acme()).await {
        assert_eq!(page.status, status, "{name}");
        check_document(name, &title, "'self' https:", &page);
        assert_eq!(page.header("referrer-policy"), "same-origin", "{name}");
    }
}

fn check_document(name: &str, title: &str, form_action: &str, page: &Page) {
    let policy = format!(
        "default-src 'none'; style-src {}; base-uri 'none'; form-action {form_action}; \
         frame-ancestors 'none'",
        style_source_of(page)
    );
    for (header, value) in [
        ("content-security-policy", &*policy),
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(page.header(header), value, "{name}");
    }
    let body = body_of(page);
    for (part, count) in [("<h1", 1), ("<main>", 1), ("</main>", 1), ("<header>", 1)] {
        assert_eq!(body.matches(part).count(), count, "{name}: {part}");
    }
    for part in [
        "<html lang=\"en\">",
        "<meta name=\"color-scheme\" content=\"light dark\">",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
        &format!("<title>{title}</title>"),
    ] {
        assert!(page.body.contains(part), "{name}: {part}");
    }
}

#[tokio::test]
async fn every_page_names_the_server_and_links_to_its_support() {
    let support = "Questions? <a href=\"mailto:help@acme.example?subject=Access\" \
                   rel=\"noopener noreferrer\">help@acme.example</a>";
    let mut pages = states::results(&acme()).await;
    pages.extend(states::starts(&acme()).await.into_iter().take(1));
    for (name, .., page) in pages {
        let body = body_of(&page);
        for part in ["<header><p><bdi>Acme Assistant</bdi></p></header>", support] {
            assert!(body.contains(part), "{name}: {part}: {body}");
        }
    }
    let info = ServerInfo::new("Acme", "1.0.0").support_url("https://acme.example/help/");
    let (.., page) = states::results(&info).await.remove(0);
    let link =
        "<a href=\"https://acme.example/help/\" rel=\"noopener noreferrer\">acme.example/help</a>";
    assert!(page.body.contains(link), "{}", page.body);
    // Without a support link.
    let (.., page) = states::results(&ServerInfo::default()).await.remove(0);
    assert!(page.body.contains("<bdi>Tools</bdi>"), "{}", page.body);
    assert!(!page.body.contains("Questions?") && !page.body.contains("<a "));
}

#[test]
fn an_invalid_support_url_fails_at_start_up() {
    let url = "javascript:alert(1)";
    let error = Local::start(Setup {
        info: ServerInfo::default().support_url(url),
        ..Setup::default()
    });
    let error = error.unwrap_err();
    assert!(error.contains("ServerInfo::support_url"), "{error}");
    assert!(!error.contains(url), "{error}");
}

#[tokio::test]
async fn without_scopes_the_page_says_that_the_provider_decides() {
    let provider = Provider::new("mail", "id", "SECRET", AUTHORIZE, AUTHORIZE).title("Mail & Co");
    let server = Local::with(Setup {
        info: ServerInfo::new("Acme & Co", "1.0.0"),
        oauth: OAuth::with([provider]),
        needs: ("mail", Vec::new()),
        ..Setup::default()
    });
    let challenge = server.challenge("alice").await;
    let page = server.open(&challenge).await;
    let sentences = "<p><bdi>Acme &amp; Co</bdi> asks for no particular permissions. \
                     <bdi>Mail &amp; Co</bdi> decides what that allows.</p>";
    assert!(page.body.contains(sentences), "{}", page.body);
}

#[tokio::test]
async fn text_from_owners_callers_and_users_is_escaped() {
    let text = |of: &str| format!("<script>alert('{of}')</script>&\"");
    let escaped = |of: &str| {
        format!("<bdi>&lt;script&gt;alert(&#39;{of}&#39;)&lt;/script&gt;&amp;&quot;</bdi>")
    };
    let dangerous = text("scope");
    let provider = Provider::new("mail", "id", "SECRET", AUTHORIZE, AUTHORIZE)
        .title(text("provider"))
        .describe_scope("mail.read", text("description"));
    let server = Local::with(Setup {
        info: ServerInfo::new(text("server"), "1.0.0").support_url("https://acme.example/?a='b'&c"),
        oauth: OAuth::with([provider]),
        needs: ("mail", vec!["mail.read".to_owned(), dangerous]),
        ..Setup::default()
    });
    let challenge = server.challenge(&text("user")).await;
    let page = server.open(&challenge).await;
    let body = body_of(&page);
    for of in ["server", "provider", "description", "user"] {
        assert!(body.contains(&escaped(of)), "{of}: {body}");
    }
    let scope = escaped("scope")
        .replace("bdi>", "code>")
        .replace("/script", "/<wbr>script");
    assert!(body.contains(&scope), "{body}");
    let link = "\"https://acme.example/?a=&#39;b&#39;&amp;c\"";
    assert!(body.contains(link), "{body}");
    assert!(!page.body.contains("<script"), "{}", page.body);
    // A result's page as well.
    let page = server.open("unknown").await;
    assert!(body_of(&page).contains(&escaped("server")));
}
