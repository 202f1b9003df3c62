//! The page: a document with its style and its scripts in it.
//!
//! The scripts are modules that import each other. A browser would fetch them with a request each, and
//! a Lambda function would start an instance for each request at once. So they are inlined when the
//! page is first opened: each becomes a function with its own scope that returns what it exports.
//! Nothing is built before, and the policy can name the hashes of one style and one script, so that the
//! browser runs and applies nothing else, even if a tool's description contained markup and a mistake
//! let it into the document.

use std::{fmt::Write, sync::LazyLock};

use axum::{
    http::header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The document, with a place for the style and one for the script.
const DOCUMENT: &str = include_str!("page/page.html");

const STYLE: &str = include_str!("page/style.css");

macro_rules! modules {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("page/", $name, ".js")))),*]
    };
}

/// The modules, each after those that it imports.
const MODULES: &[(&str, &str)] = modules![
    "json" "dom" "schema" "controls" "editor" "server" "protocols" "copies" "result" "tool" "start"
];

/// The document and its policy, made on first use.
struct Page {
    html: Bytes,
    policy: String,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let script = script();
    let html = DOCUMENT
        .replace("<style></style>", &format!("<style>{STYLE}</style>"))
        .replace("<script></script>", &format!("<script>{script}</script>"));
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash_source(&script),
        hash_source(STYLE)
    );
    Page {
        html: html.into(),
        policy,
    }
});

/// Returns the page, which is the same for every server: HTML with a Content-Security-Policy, and a
/// status of 200.
#[must_use]
pub fn page() -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, &*PAGE.policy),
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, PAGE.html.clone()).into_response()
}

/// Returns the `hash-source` of the style or the script (CSP Level 3, section 2.3.1).
fn hash_source(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)))
}

/// Returns all modules as one script.
fn script() -> String {
    let mut script = "(() => {\n'use strict';\n".to_owned();
    for (module, text) in MODULES {
        let _ = writeln!(script, "const ${module} = (() => {{");
        let mut exports = Vec::new();
        for line in text.lines() {
            let declaration = line.strip_prefix("export ");
            exports.extend(declaration.and_then(declared));
            let _ = match imported(line) {
                Some((names, from)) => writeln!(script, "const {{ {names} }} = ${from};"),
                None => writeln!(script, "{}", declaration.unwrap_or(line)),
            };
        }
        let _ = writeln!(script, "return {{ {} }};\n}})();", exports.join(", "));
    }
    script + "})();\n"
}

/// Returns the names in an `import` line, and the module that exports them.
fn imported(line: &str) -> Option<(&str, &str)> {
    let (names, from) = line.strip_prefix("import { ")?.split_once(" } from './")?;
    Some((names, from.strip_suffix(".js';")?))
}

/// Returns the name that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split([' ', '(']);
    words.find(|word| !["async", "const", "function"].contains(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn exports(text: &str) -> Vec<&str> {
        let lines = text.lines().filter_map(|it| it.strip_prefix("export "));
        lines.filter_map(declared).collect()
    }

    /// Returns true if a text calls a function that it does not define.
    fn calls(text: &str, name: &str) -> bool {
        let is_part = |it: char| it.is_alphanumeric() || it == '.' || it == '$';
        let call = format!("{name}(");
        let mut places = text.match_indices(&call).map(|(at, _)| at);
        places.any(|at| !text[..at].ends_with(is_part))
            && !text.contains(&format!("const {name} ="))
    }

    #[test]
    fn modules_import_what_they_use_from_those_before_them() {
        let mut known: BTreeMap<&str, &str> = BTreeMap::new();
        for (module, text) in MODULES {
            let (imports, body): (Vec<_>, Vec<_>) =
                text.lines().partition(|line| line.starts_with("import { "));
            let imports = imports.into_iter().map(|line| imported(line).expect(line));
            let imports =
                imports.flat_map(|(names, from)| names.split(", ").map(move |it| (it, from)));
            let imports: BTreeMap<_, _> = imports.collect();
            let body = body.join("\n");
            for (name, from) in &imports {
                assert_eq!(known.get(name), Some(from), "{module} imports {name}");
                assert!(body.contains(name), "{module} does not use {name}");
            }
            for name in known.keys() {
                let is_known = imports.contains_key(name) || !calls(&body, name);
                assert!(is_known, "{module} does not import {name}");
            }
            known.extend(exports(text).into_iter().map(|name| (name, *module)));
        }
        assert_eq!(known.get("toolView"), Some(&"tool"));
    }

    #[test]
    fn nothing_of_the_modules_syntax_is_left() {
        let script = script();
        let mut lines = script.lines();
        assert!(!lines.any(|it| it.starts_with("export ") || it.starts_with("import {")));
        assert_eq!(script.matches("\nreturn { ").count(), MODULES.len());
        assert!(!script.contains("</script"));
    }
}
