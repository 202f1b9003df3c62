//! The messages in `docs/troubleshooting.md`, each of which a program says today.
//!
//! The programs are started with what their readers do wrong. The responses in `events/` count, too:
//! another test compares them with those of the program.

mod programs;
mod services;

use std::fs;

use test_support::{documents::quoted, repository};

use self::programs::{
    Said, compiled, events, faulty_tools, local_servers, starts, tools, warnings,
};
use self::services::{aws, claude_code, on_lambda, sign_in_pages};

/// Returns the messages in the first columns of the page's tables. Only the table of what others say
/// has none.
fn messages() -> Vec<String> {
    let page = fs::read_to_string(repository("docs/troubleshooting.md")).unwrap();
    let mut messages = Vec::new();
    let mut says = true;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') || line.starts_with("| ---") {
            continue;
        }
        let is_heading = lines.peek().is_some_and(|next| next.starts_with("| ---"));
        if is_heading {
            says = !line.starts_with("| what happens | ");
            continue;
        }
        let found = quoted(line.split(" | ").next().unwrap());
        assert_eq!(found.is_empty(), !says, "{line}");
        messages.extend(found);
    }
    messages
}

/// Returns true if a text contains a message. In the message, `…` matches any text.
fn contains(text: &str, message: &str) -> bool {
    let mut rest = text;
    message.split('…').all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn a_message_occurs_in_the_order_of_its_parts() {
    for (text, message, expected) in [
        ("it says: one, not two", "one, not two", true),
        ("it says one and two", "one…two", true),
        ("it says two and one", "one…two", false),
        ("it says one", "one…two", false),
        ("it says one", "…one…", true),
    ] {
        assert_eq!(contains(text, message), expected, "{text} {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, moto and npm's Claude Code; run tests/all"]
async fn programs_say_every_message_of_the_page() {
    let said: [(&str, Said); 11] = [
        ("the compiler", compiled()),
        ("the toolkit", tools()),
        ("errors at the start", starts()),
        ("warnings at the start", warnings()),
        ("responses in events/", events()),
        ("local servers", local_servers().await),
        ("faulty tools", faulty_tools().await),
        ("stores", aws().await),
        ("the log on Lambda", on_lambda().await),
        ("pages for people", sign_in_pages().await),
        ("Claude Code", claude_code().await),
    ];
    let messages = messages();
    let says =
        |(_, texts): &(&str, Said), message: &str| texts.iter().any(|text| contains(text, message));
    let unsaid: Vec<_> = messages
        .iter()
        .filter(|message| !said.iter().any(|it| says(it, message)))
        .collect();
    assert!(unsaid.is_empty(), "nobody says {unsaid:#?} but {said:#?}");
    for it in &said {
        let is_used = messages.iter().any(|message| says(it, message));
        assert!(is_used, "the page needs nothing of {}", it.0);
    }
}
