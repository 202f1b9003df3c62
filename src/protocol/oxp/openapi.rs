//! The server as an `OpenAPI` 3.1 document: OXP's paths, and a path for each version of each tool.
//!
//! The paths of single tools exist because generators of clients make a typed function of each, as
//! they cannot of one path for all tools.

mod operation;
mod security;

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    Auth, ServerInfo, Toolkit, json::JsonObject, protocol::listed_tools::ListedTools,
    tool::definition::name_of,
};
use operation::ToolOperation;

/// OXP's own paths and schemas.
const BASE: &str = include_str!("openapi/base.json");

/// Returns the document of a server that requires these credentials.
pub(crate) fn document(info: &ServerInfo, toolkit: &Toolkit, auth: &Auth) -> Value {
    document_of(info, &ListedTools::complete(toolkit, auth, None))
}

/// Returns the document of a server with these tools.
pub(super) fn document_of(info: &ServerInfo, tools: &ListedTools<'_>) -> Value {
    let mut document: Value = serde_json::from_str(BASE).expect("a test parses it");
    document["info"] = json!(info);
    // The default of the specification is the root of the host that the document comes from.
    let url = tools.server_url().unwrap_or("/");
    document["servers"] = json!([{"url": url}]);
    add_tools(&mut document, tools);
    security::add(&mut document, tools.auth);
    document
}

fn add_tools(document: &mut Value, tools: &ListedTools<'_>) {
    let newest: HashSet<_> = tools.newest().map(|entry| &entry.id).collect();
    let mut names = tools.newest().map(|it| name_of(&it.id, &it.tool)).collect();
    let mut tags = JsonObject::new();
    for entry in tools.entries() {
        let operation = ToolOperation::of(entry, newest.contains(&entry.id), &mut names);
        let tag = operation.tag;
        // A toolkit of this name shares the tag of OXP's own paths.
        if tag != "OXP" {
            tags.entry(tag).or_insert_with(|| json!({"name": tag}));
        }
        let requirement = security::requirement(tools.auth, &entry.tool);
        operation.add_to(document, requirement);
    }
    if let Some(all) = document["tags"].as_array_mut() {
        all.extend(tags.into_iter().map(|(_, tag)| tag));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Failure, Tool,
        protocol::{
            codec::Codec,
            oxp::{OxpCodec, format::ListFormat},
        },
    };

    fn tool(id: &'static str) -> Tool {
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        Tool::dynamic(
            id,
            "A tool.",
            json!({"type": "object"}),
            Value::Null,
            nothing,
        )
    }

    #[test]
    fn operations_have_unique_names_and_the_newest_version_has_the_tools() {
        let ids = ["A.B@1.0.0", "A.B@2.0.0", "A.B_1_0_0@3.0.0"];
        let like_oxp = tool("OXP.Call@1.0.0").name("call_tool");
        let tools = ids.map(tool).into_iter().chain([like_oxp]);
        let toolkit = Toolkit::new(tools).unwrap();
        let document = document(&ServerInfo::default(), &toolkit, &Auth::none());
        let name_of =
            |id: &str| &document["paths"][format!("/tools/{id}/call")]["post"]["operationId"];
        assert_eq!(name_of("A.B@2.0.0"), "A_B");
        assert_eq!(name_of("OXP.Call@1.0.0"), "call_tool_");
        assert_eq!(document["tags"].as_array().unwrap().len(), 2);
        assert_eq!(name_of("A.B@1.0.0"), "A_B_1_0_0_");
        assert_eq!(name_of("A.B_1_0_0@3.0.0"), "A_B_1_0_0");
    }

    #[test]
    fn the_document_names_the_url_of_the_request() {
        let toolkit = Toolkit::new([tool("A.B@1.0.0")]).unwrap();
        let (auth, info) = (Auth::none(), ServerInfo::default());
        let codec = OxpCodec::new(&info);
        for url in [
            Some("https://a.example"),
            None,
            Some("https://b.example/x"),
            Some("https://a.example"),
        ] {
            let tools = ListedTools::complete(&toolkit, &auth, url);
            let document = codec.list(&ListFormat::OpenApi.into(), &tools);
            let document: Value = serde_json::from_slice(document.body()).unwrap();
            assert_eq!(document["servers"][0]["url"], url.unwrap_or("/"));
        }
    }
}
