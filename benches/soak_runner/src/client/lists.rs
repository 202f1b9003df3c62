//! Lists of tools, documents and pages: plain, compressed, and unchanged.

use serde_json::json;

use super::Client;
use crate::{
    answer::Answer,
    event::Event,
    protocol::{Protocol, mcp},
};

/// The lists and documents over GET, and a text in each.
const LISTS: [(&str, &str); 6] = [
    ("/tools", "\"Load.Describe@1.0.0\""),
    ("/tools?for=openai", "Load_Describe"),
    ("/tools?for=anthropic", "Load_Describe"),
    ("/tools?for=gemini", "Load_Describe"),
    ("/opentool/load", "Load_Describe"),
    ("/openapi.json", "/tools/Load.Describe"),
];

/// Other documents and pages, and a text in each.
const DOCUMENTS: [(&str, &str); 5] = [
    ("/health", ""),
    ("/opentool/version", "1.0.0"),
    (
        "/.well-known/oauth-protected-resource/mcp",
        "authorization_servers",
    ),
    (
        "/.well-known/oauth-protected-resource",
        "authorization_servers",
    ),
    ("/", "<!DOCTYPE html>"),
];

impl Client {
    pub(super) async fn list(&mut self) -> Option<()> {
        let (path, text) = LISTS[self.random.usize(..LISTS.len())];
        let event = Event::get(path).credential(&self.credential());
        let plain = self
            .compare("list", path, event, |answer| is_list(answer, text))
            .await?;
        match self.random.u8(..3) {
            0 => self.compressed(path, &plain).await,
            1 => self.unchanged(path, plain.header("etag")).await,
            _ => Some(()),
        }
    }

    async fn compressed(&mut self, path: &str, plain: &Answer) -> Option<()> {
        let event = Event::get(path).header("accept-encoding", "gzip");
        let event = event.credential(&self.credential());
        let name = format!("{path}, gzip");
        let check = |answer: &Answer| {
            if answer.status != 200 {
                return Err("another status".to_owned());
            }
            if plain.body.len() < 16 * 1024 {
                let is_plain = answer.body == plain.body;
                return is_plain.then_some(()).ok_or("another list".into());
            }
            let is_gzip = answer.header("content-encoding") == "gzip";
            let is_same = gunzip(&answer.body).is_some_and(|list| list == plain.body);
            (is_gzip && is_same)
                .then_some(())
                .ok_or_else(|| "not the same list, compressed".into())
        };
        self.compare("compressed list", &name, event, check).await?;
        Some(())
    }

    async fn unchanged(&mut self, path: &str, tag: &str) -> Option<()> {
        let event = Event::get(path).header("if-none-match", tag);
        let event = event.credential(&self.credential());
        let name = format!("{path}, unchanged");
        let check = |answer: &Answer| {
            let is_unchanged =
                answer.status == 304 && answer.body.is_empty() && answer.header("etag") == tag;
            is_unchanged.then_some(()).ok_or_else(|| "not a 304".into())
        };
        self.compare("unchanged list", &name, event, check).await?;
        Some(())
    }

    pub(super) async fn document(&mut self) -> Option<()> {
        if self.random.bool() {
            return self.mcp_document().await;
        }
        let (path, text) = DOCUMENTS[self.random.usize(..DOCUMENTS.len())];
        let event = Event::get(path).credential(&self.credential());
        self.compare("document", path, event, |answer| is_document(answer, text))
            .await?;
        Some(())
    }

    async fn mcp_document(&mut self) -> Option<()> {
        use Protocol::{McpLegacy, McpModern};
        let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "soak", "version": "1"}});
        let (protocol, method, params, text) = [
            (McpModern, "tools/list", json!({}), "Load_Describe"),
            (McpLegacy, "tools/list", json!({}), "Load_Describe"),
            (McpModern, "server/discover", json!({}), "2026-07-28"),
            (McpLegacy, "initialize", initialize, "2025-11-25"),
            (McpLegacy, "ping", json!({}), "result"),
        ][self.random.usize(..5)]
        .clone();
        let event = mcp(protocol, method, params).credential(&self.credential());
        let name = format!("{} {method}", protocol.name());
        let check = |answer: &Answer| is_document(answer, text);
        self.compare("MCP document", &name, event, check).await?;
        Some(())
    }
}

fn is_list(answer: &Answer, text: &str) -> Result<(), String> {
    is_document(answer, text)?;
    let has_tag = !answer.header("etag").is_empty();
    has_tag.then_some(()).ok_or_else(|| "no tag".into())
}

fn is_document(answer: &Answer, text: &str) -> Result<(), String> {
    if answer.status != 200 {
        return Err("another status".into());
    }
    let has_text = String::from_utf8_lossy(&answer.body).contains(text);
    has_text.then_some(()).ok_or_else(|| format!("no {text:?}"))
}

/// Decompresses a file with the shortest possible header (RFC 1952).
fn gunzip(file: &[u8]) -> Option<Vec<u8>> {
    let deflated = file.get(10..file.len().checked_sub(8)?)?;
    miniz_oxide::inflate::decompress_to_vec(deflated).ok()
}
