//! The server as an `OpenAPI` 3.1 document: OXP's paths, and a path for each version of each tool.
//!
//! The paths of single tools exist because generators of clients make a typed function of each, as
//! they cannot of one path for all tools.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::{
    Auth, ServerInfo, ToolDefinition, Toolkit,
    json::JsonObject,
    protocol::listed_tools::ListedTools,
    tool::{
        definition::name_of,
        parts::ToolParts,
        repeats::RepeatPolicy,
        schema::{example::example_of, modernize},
        toolkit::ToolEntry,
    },
};

/// OXP's own paths and schemas.
const BASE: &str = include_str!("openapi/base.json");

/// The operation of a tool, `POST /tools/{tool_id}/call`, as far as it is the same for all tools.
const OPERATION: &str = include_str!("openapi/operation.json");

/// The operations of OXP's own paths.
const OXP_OPERATIONS: [&str; 4] = ["call_tool", "get_health", "get_openapi", "list_tools"];

/// Returns the document of a server that requires these credentials.
pub(crate) fn document(info: &ServerInfo, toolkit: &Toolkit, auth: &Auth) -> Value {
    document_of(&ListedTools::new(info, toolkit, auth, None, None))
}

/// Returns the document of a server with these tools.
pub(super) fn document_of(tools: &ListedTools<'_>) -> Value {
    let mut document: Value = serde_json::from_str(BASE).expect("a test parses it");
    document["info"] = json!(tools.info);
    // The default of the specification is the root of the host that the document comes from.
    let url = tools.server_url.unwrap_or("/");
    document["servers"] = json!([{"url": url}]);
    add_tools(&mut document, tools);
    add_security(&mut document, tools.auth);
    document
}

fn add_tools(document: &mut Value, tools: &ListedTools<'_>) {
    let newest: HashSet<_> = tools.newest().map(|entry| &entry.id).collect();
    let mut names = tools.newest().map(|it| name_of(&it.id, &it.tool)).collect();
    let mut tags = JsonObject::new();
    for entry in tools.entries() {
        let definition = ToolDefinition::of(&entry.id, &entry.tool);
        let name = operation_id(&definition, newest.contains(&entry.id), &mut names);
        let qualified = entry.id.qualified();
        let tag = qualified.split_once('.').map_or(qualified, |(tag, _)| tag);
        // A toolkit of this name shares the tag of OXP's own paths.
        if tag != "OXP" {
            tags.entry(tag).or_insert_with(|| json!({"name": tag}));
        }
        let mut operation = operation_of(entry, &definition, &name);
        operation["tags"] = json!([tag]);
        if let Some(security) = requirement(tools.auth, &entry.tool) {
            operation["security"] = security;
        }
        let path = format!("/tools/{}/call", definition.id);
        document["paths"][path] = json!({"post": operation});
        let schemas = &mut document["components"]["schemas"];
        schemas[format!("{name}_Input")] = published(definition.input_schema);
        schemas[format!("{name}_Output")] = published(definition.output_schema);
    }
    if let Some(all) = document["tags"].as_array_mut() {
        all.extend(tags.into_iter().map(|(_, tag)| tag));
    }
}

/// Returns the id of an operation, which also begins the names of its schemas. The newest version of a
/// tool has the tool's name, so that generated code keeps its names when a version is added; older
/// ones have their version in it. `names` are the names that are in use, at first those of the newest
/// versions.
fn operation_id(tool: &ToolDefinition, is_newest: bool, names: &mut HashSet<String>) -> String {
    let mut name = tool.name.clone();
    let mut is_taken = OXP_OPERATIONS.contains(&&*name);
    if !is_newest {
        name = format!("{name}_{}", tool.version.replace('.', "_"));
        is_taken = names.contains(&name);
    }
    while is_taken {
        name.push('_');
        is_taken = names.contains(&name);
    }
    names.insert(name.clone());
    name
}

fn operation_of(entry: &ToolEntry, definition: &ToolDefinition, name: &str) -> Value {
    let schema = |end: &str| json!({"$ref": format!("#/components/schemas/{name}_{end}")});
    let title = entry.tool.title.as_deref().unwrap_or(&definition.name);
    let required = definition.input_schema["required"].as_array();
    let mut operation: Value = serde_json::from_str(OPERATION).expect("a test parses it");
    operation["operationId"] = name.into();
    operation["summary"] = title.into();
    operation["description"] = (&*definition.description).into();
    operation["requestBody"]["required"] = required.is_some_and(|it| !it.is_empty()).into();
    let body = &mut operation["requestBody"]["content"]["application/json"];
    body["schema"] = schema("Input");
    // A value that is only guessed from a type says nothing to a reader, and may be invalid.
    if let Some(example) = example_of(&definition.input_schema, |_| None) {
        body["example"] = example;
    }
    operation["responses"]["200"]["content"]["application/json"]["schema"] = schema("Output");
    if entry.tool.policy == RepeatPolicy::Idempotent {
        // A repeated call has no further effect, whatever its id is.
        let parameters = operation["parameters"].as_array_mut();
        parameters.map(|it| it.remove(0));
    }
    if !definition.requirements.is_empty() {
        operation["x-requirements"] = json!(definition.requirements);
    }
    operation
}

/// Returns a schema of the document; a tool that returns nothing has `null`.
fn published(mut schema: Value) -> Value {
    if schema.is_null() {
        return json!({"type": "null"});
    }
    modernize(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        // The dialect of the document, draft 2020-12, applies.
        fields.shift_remove("$schema");
    }
    schema
}

/// Adds the schemes, the requirement of all operations, and the response without credentials.
fn add_security(document: &mut Value, auth: &Auth) {
    let schemes = schemes_of(auth);
    if schemes.is_empty() {
        let responses = document["components"]["responses"].as_object_mut();
        responses.and_then(|it| it.shift_remove("Unauthenticated"));
        return;
    }
    document["security"] = alternatives(&schemes, &required_scopes(auth, None));
    for (_, path) in document["paths"].as_object_mut().into_iter().flatten() {
        for (_, operation) in path.as_object_mut().into_iter().flatten() {
            // A health check needs no credentials.
            let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
            if !is_open {
                operation["responses"]["401"] =
                    json!({"$ref": "#/components/responses/Unauthenticated"});
            }
        }
    }
    let schemes = schemes.into_iter();
    document["components"]["securitySchemes"] =
        schemes.map(|(name, scheme, _)| (name, scheme)).collect();
}

/// Returns the requirement of a tool that needs more scopes than every call does.
fn requirement(auth: &Auth, tool: &ToolParts) -> Option<Value> {
    let scopes = required_scopes(auth, Some(tool));
    let schemes = schemes_of(auth);
    let has_own = scopes != required_scopes(auth, None);
    (has_own && !schemes.is_empty()).then(|| alternatives(&schemes, &scopes))
}

/// Returns the scopes that a call of the tool requires; without a tool, those of every call.
fn required_scopes<'a>(auth: &'a Auth, tool: Option<&'a ToolParts>) -> BTreeSet<&'a str> {
    let of_tool = tool.into_iter().flat_map(|tool| &tool.scopes);
    let all = auth.scopes().iter().chain(of_tool);
    all.map(String::as_str).collect()
}

/// Returns one requirement for each scheme: any of them is enough.
fn alternatives(schemes: &[Scheme], scopes: &BTreeSet<&str>) -> Value {
    let none = BTreeSet::new();
    let alternative = |(name, _, has_scopes): &Scheme| {
        let scopes = if *has_scopes { scopes } else { &none };
        json!({name: scopes})
    };
    schemes.iter().map(alternative).collect()
}

/// The name of a scheme, the scheme, and true if a requirement can name its scopes.
type Scheme = (String, Value, bool);

fn schemes_of(auth: &Auth) -> Vec<Scheme> {
    let mut schemes = Vec::new();
    let mut bearers = BTreeSet::new();
    if auth.has_keys() {
        let key = json!({"type": "apiKey", "in": "header", "name": "OXP-API-Key"});
        schemes.push(("apiKey".to_owned(), key, false));
        bearers.insert("an API key");
    }
    if auth.has_jwt() {
        bearers.insert("a signed JWT");
    }
    // A URL without a host is this server's.
    let own = auth.sign_in().map(|_| "");
    let issuers = own.into_iter().chain(auth.issuer_urls()).zip(1..);
    schemes.extend(issuers.map(|(url, number)| issuer_scheme(url, number)));
    if auth.accepts_gateway() {
        let key = json!({
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "The credentials that API Gateway or AWS IAM checks.",
        });
        schemes.push(("platform".to_owned(), key, false));
    }
    if !bearers.is_empty() {
        let kinds: Vec<_> = bearers.into_iter().collect();
        let description = format!("The token is {}.", kinds.join(" or "));
        let bearer = json!({"type": "http", "scheme": "bearer", "description": description});
        schemes.push(("bearer".to_owned(), bearer, false));
    }
    schemes
}

/// Returns the scheme of an issuer: the first one is `signIn`, the second one `signIn2`.
fn issuer_scheme(issuer: &str, number: usize) -> Scheme {
    let name = match number {
        1 => "signIn".to_owned(),
        number => format!("signIn{number}"),
    };
    let url = issuer.trim_end_matches('/');
    let scheme = json!({
        "type": "openIdConnect",
        "openIdConnectUrl": format!("{url}/.well-known/openid-configuration"),
    });
    (name, scheme, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ApiKeys, Failure, Tool,
        protocol::{
            codec::Codec,
            oxp::{OxpCodec, dialect::ListFormat},
        },
    };

    fn tool(id: &'static str) -> Tool {
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        let input = json!({"type": "object"});
        Tool::dynamic(id, "A tool.", input, Value::Null, nothing)
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
        let codec = OxpCodec::default();
        let [a, b] = ["https://a.example", "https://b.example/x"];
        for url in [Some(a), None, Some(b), Some(a)] {
            let tools = ListedTools::new(&info, &toolkit, &auth, url, None);
            let document = codec.list(&ListFormat::OpenApi.into(), &tools);
            let document: Value = serde_json::from_slice(document.body()).unwrap();
            assert_eq!(document["servers"][0]["url"], url.unwrap_or("/"));
        }
    }

    fn document_for(auth: impl Into<Auth>) -> Value {
        let tools = [
            tool("Mail.Read@1.0.0"),
            tool("Mail.Send@1.0.0").scope("mail.send"),
        ];
        let toolkit = Toolkit::new(tools).unwrap();
        document(&ServerInfo::default(), &toolkit, &auth.into())
    }

    #[test]
    fn a_key_may_be_sent_in_either_header() {
        let document = document_for(ApiKeys::with_ids(["KEY"]));
        let either = json!([{"apiKey": []}, {"bearer": []}]);
        assert_eq!(document["security"], either);
        let has_401 = |path: &str, method: &str| {
            let operation = &document["paths"][path][method];
            operation["responses"].get("401").is_some()
        };
        assert!(has_401("/tools", "get"));
        assert!(has_401("/tools/Mail.Send@1.0.0/call", "post"));
        assert!(!has_401("/health", "get"));
        assert_eq!(document["paths"]["/health"]["get"]["security"], json!([]));
    }

    #[cfg(feature = "oidc")]
    #[test]
    fn each_issuer_has_a_scheme_and_each_tool_its_scopes() {
        use crate::Oidc;

        let auth = Auth::from(Oidc::issuer("https://idp.example/"))
            .or(Oidc::issuer("https://other.example"))
            .scope("tools.call");
        let document = document_for(auth);
        let schemes = &document["components"]["securitySchemes"];
        let url = "https://idp.example/.well-known/openid-configuration";
        assert_eq!(schemes["signIn"]["openIdConnectUrl"], url);
        assert!(schemes["signIn2"].is_object());
        let required = |scopes: Value| json!([{"signIn": scopes}, {"signIn2": scopes}]);
        assert_eq!(document["security"], required(json!(["tools.call"])));
        let call = |id: &str| &document["paths"][format!("/tools/{id}/call")]["post"];
        assert!(call("Mail.Read@1.0.0").get("security").is_none());
        let both = required(json!(["mail.send", "tools.call"]));
        assert_eq!(call("Mail.Send@1.0.0")["security"], both);
    }
}
