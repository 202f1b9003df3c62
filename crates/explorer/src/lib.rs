//! A page on which people see the tools of a server as a model sees them, and call them.
//!
//! Before an agent uses a tool, its author should read what the agent will read, and try a call. The
//! page needs no installation, and no other server than the one that has the tools: [`router`] serves
//! the page and its data, and the page sends the calls of a client of MCP, OXP or OpenTool.
//!
//! # The data
//!
//! `GET /explorer.json` returns one object. The README has an example. It is not a protocol, and may
//! change with any version of this crate.
//!
//! | field | |
//! | --- | --- |
//! | `server` | the `title`, the `version` and the `description` of the server |
//! | `protocols` | the protocols that it serves: `Mcp` at `mcp`, `Oxp` at `tools/call`, `OpenTool` at `opentool/call`, relative to the page |
//! | `requires_credentials` | true if calls need an `Authorization` header |
//! | `recognizes_call_ids` | true if a call with the id of an earlier one does not run again |
//! | `limits` | `request_bytes` and `response_bytes`, the maximum sizes of bodies |
//! | `tools` | the tools: one object for each version of each tool |
//!
//! An object in `tools` has the `id` with a version (`Shop.Price@1.0.0`), the `toolkit` (`Shop`), the
//! `name` for models (`Shop_Price`), the `title` or null, the `version`, `is_newest`, the `description`,
//! `input_schema` and `output_schema`, the `requirements` of OXP (`user_id`, `secrets`, `authorization`),
//! the `scopes` of the caller's token, `repeats` (`idempotent`, `recorded` or `at_most_once`), `hints`
//! (`read_only`, `destructive` and `open_world`: true, false or null), `timeout_ms`, and
//! `returns_content`: true if the output is content as OXP's tools return it, such as an image.

mod page;

use axum::{Router, handler::Handler, routing::get};

pub use page::page;

/// Returns a router with the page at `/`, and with its data at `/explorer.json`: the response of
/// `listing`.
///
/// The page has nothing about the server, and loads for everybody. The data are for callers who may
/// list the tools: `listing`, or a layer, has to check the `Authorization` header and to return a 401
/// or a 403 if it is wrong. The page then asks its user for a key or a token. Nobody should store the
/// data: send them with `Cache-Control: no-store`.
pub fn router<H, T>(listing: H) -> Router
where
    H: Handler<T, ()>,
    T: 'static,
{
    Router::new()
        .route("/", get(async || page()))
        .route("/explorer.json", get(listing))
}

/// Compiles the code in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
