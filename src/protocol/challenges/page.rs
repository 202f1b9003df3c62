//! The parts that all pages share: the document, its style and its headers.
//!
//! Pages have no scripts, and load nothing. Their only style is in the document, and the content
//! security policy admits it by its hash. Text from others, such as a user's id, is escaped, and
//! isolated where its direction would reorder the text next to it.

use axum::response::Response;

use crate::{
    ServerInfo,
    protocol::pages::{hash_source, html_response},
};

const STYLE: &str = include_str!("page.css");

/// The content of a page. Its texts are HTML.
pub(in crate::protocol) struct Page<'a> {
    pub(in crate::protocol) title: &'a str,
    pub(in crate::protocol) main: &'a str,
    /// The sources in `form-action`.
    pub(in crate::protocol) form_action: &'a str,
    /// Added to the style that all pages share.
    pub(in crate::protocol) style: &'static str,
    pub(in crate::protocol) referrer_policy: &'static str,
}

impl Page<'_> {
    /// Returns the response with this page, which names the server.
    pub(in crate::protocol) fn response(&self, info: &ServerInfo) -> Response {
        let policy = format!(
            "default-src 'none'; style-src {}; base-uri 'none'; form-action {}; \
             frame-ancestors 'none'",
            hash_source(&format!("{STYLE}{}", self.style)),
            self.form_action
        );
        html_response(self.html(info), &policy, self.referrer_policy)
    }

    fn html(&self, info: &ServerInfo) -> String {
        let (title, main, style) = (self.title, self.main, self.style);
        let (server, support) = (isolated(info.title()), support_of(info));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n\
             <header><p>{server}</p></header>\n<main>\n{main}</main>\n{support}</body>\n</html>\n"
        )
    }
}

/// Returns the link to the owner's support; empty if there is none.
fn support_of(info: &ServerInfo) -> String {
    let Some(url) = &info.support_url else {
        return String::new();
    };
    let address = url
        .strip_prefix("mailto:")
        .and_then(|it| it.split('?').next());
    let page = || url.trim_start_matches("https://").trim_end_matches('/');
    let text = escaped(address.unwrap_or_else(page));
    let url = escaped(url);
    format!(
        "<footer><p>Questions? <a href=\"{url}\" rel=\"noopener noreferrer\">{text}</a></p>\
         </footer>\n"
    )
}

/// Returns escaped text whose direction does not affect the text next to it.
pub(in crate::protocol) fn isolated(text: &str) -> String {
    format!("<bdi>{}</bdi>", escaped(text))
}

pub(in crate::protocol) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
