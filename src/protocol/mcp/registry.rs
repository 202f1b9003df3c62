//! `server.json`, the entry of a server in MCP's registry.
//!
//! Reference: the registry's schema of 2025-12-11, and the stricter rules of its validators.

use http::Uri;
use serde_json::{Value, json};

use crate::{Auth, ServerInfo, tool::icon::is_web_page};

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

const NAME: &str = "the name must be a reversed domain, a slash and a name, in letters, digits and .-, \
    such as io.github.OWNER/SERVER";
const URL: &str = "the URL must be that of the MCP endpoint on the internet: https://, a path that ends \
    with /mcp, no credentials, no query";
const TITLE: &str = "the title in ServerInfo::new must have 1 to 100 characters";
const DESCRIPTION: &str = "the description must have 1 to 100 characters; a third argument replaces that \
    of ServerInfo";
const ICON: &str = "the URL of an icon must have at most 255 characters";

/// Returns the server's entry in the registry, or all mistakes in it.
pub(crate) fn registry_entry(
    info: &ServerInfo,
    auth: &Auth,
    name: &str,
    url: &str,
    description: &str,
) -> Result<Value, String> {
    // The registry accepts no `data:` URIs.
    let icons = info.icons.iter().filter(|it| is_web_page(it.src()));
    let icons: Vec<_> = icons.collect();
    check([
        (is_name(name), NAME),
        (is_endpoint(url), URL),
        (is_short(info.title()), TITLE),
        (is_short(description), DESCRIPTION),
        (icons.iter().all(|it| it.src().len() <= 255), ICON),
    ])?;
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": name,
        "title": info.title(),
        "description": description,
        "version": info.version(),
        "remotes": [remote(auth, url)],
    });
    if let Some(url) = info.support_url.as_deref().filter(|it| is_web_page(it)) {
        entry["websiteUrl"] = url.into();
    }
    if !icons.is_empty() {
        entry["icons"] = json!(icons);
    }
    Ok(entry)
}

/// Returns an error with the texts of all rules that are broken.
fn check(rules: [(bool, &str); 5]) -> Result<(), String> {
    let broken = rules.into_iter().filter(|(is_kept, _)| !is_kept);
    let broken: Vec<_> = broken.map(|(_, text)| text).collect();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(broken.join("; "))
    }
}

/// Returns the endpoint, with the header of callers that do not sign in.
fn remote(auth: &Auth, url: &str) -> Value {
    let mut remote = json!({"type": "streamable-http", "url": url});
    if auth.has_keys() || auth.has_jwt() {
        remote["headers"] = json!([{
            "name": "Authorization",
            "description": "Bearer, a space, and your API key or JWT",
            "isRequired": !auth.has_issuers(),
            "isSecret": true,
        }]);
    }
    remote
}

fn is_name(name: &str) -> bool {
    let is_part = |part: &str, others: &str| {
        let is_allowed = |it: char| it.is_ascii_alphanumeric() || others.contains(it);
        let has_ends = part.trim_matches(['.', '-', '_']) == part;
        part.len() >= 2 && has_ends && part.chars().all(is_allowed)
    };
    name.split_once('/').is_some_and(|(domain, server)| {
        let is_domain = domain.contains('.') && !domain.contains("..");
        name.len() <= 200 && is_domain && is_part(domain, ".-") && is_part(server, "._-")
    })
}

/// Returns true for the URL of an MCP endpoint whose host is not this machine.
fn is_endpoint(url: &str) -> bool {
    let parsed = url.parse::<Uri>().unwrap_or_default();
    let host = parsed.host().unwrap_or_default().to_ascii_lowercase();
    let is_local = ["127.0.0.1", "[::1]", "localhost"].contains(&&*host);
    let path = parsed.path().trim_end_matches('/');
    is_web_page(url)
        && !is_local
        && !host.ends_with(".localhost")
        && path.ends_with("/mcp")
        && !url.contains(['?', '#'])
}

fn is_short(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Icon;

    fn entry_of(info: &ServerInfo) -> Result<Value, String> {
        let url = "https://tools.example/mcp";
        registry_entry(info, &Auth::none(), "com.example/tools", url, "Tools.")
    }

    #[test]
    fn icons_and_the_support_page_are_those_that_the_registry_accepts() {
        let dark = Icon::new("https://tools.example/dark.svg")
            .media_type("image/svg+xml")
            .size("any")
            .for_dark_background();
        let info = ServerInfo::new("Tools", "1.2.0")
            .icon(Icon::bytes("image/png", b"\x89PNG"))
            .icon(dark)
            .support_url("https://tools.example/help");
        let entry = entry_of(&info).unwrap();
        let expected = json!([{
            "src": "https://tools.example/dark.svg",
            "mimeType": "image/svg+xml",
            "sizes": ["any"],
            "theme": "dark",
        }]);
        assert_eq!(entry["icons"], expected);
        assert_eq!(entry["websiteUrl"], "https://tools.example/help");
        assert_eq!(entry["version"], "1.2.0");
        let info = ServerInfo::new("Tools", "1.2.0")
            .icon(Icon::bytes("image/png", b"\x89PNG"))
            .support_url("mailto:help@tools.example");
        let entry = entry_of(&info).unwrap();
        assert_eq!((entry.get("icons"), entry.get("websiteUrl")), (None, None));
    }

    #[test]
    fn titles_and_urls_of_icons_have_limits() {
        let page = |length: usize| format!("https://a.example/{}", "i".repeat(length - 18));
        let info = |title: &str, icon: usize| ServerInfo::new(title, "1.0.0").icon(&*page(icon));
        assert!(entry_of(&info(&"é".repeat(100), 255)).is_ok());
        let mistakes = entry_of(&info(&"é".repeat(101), 256)).unwrap_err();
        assert_eq!(mistakes, format!("{TITLE}; {ICON}"));
        assert_eq!(entry_of(&info(" ", 255)).unwrap_err(), TITLE);
    }
}
