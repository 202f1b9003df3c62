//! The credentials in the document: security schemes, and the requirements of operations.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{Auth, tool::parts::ToolParts};

/// Adds the schemes, the requirement of all operations, and the response without credentials.
pub(super) fn add(document: &mut Value, auth: &Auth) {
    let schemes = schemes_of(auth);
    if schemes.is_empty() {
        return;
    }
    document["components"]["responses"]["Unauthenticated"] = unauthenticated();
    let scopes: Vec<_> = required_scopes(auth, None).into_iter().collect();
    document["security"] = alternatives(&schemes, &scopes);
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

fn unauthenticated() -> Value {
    json!({
        "description": "The credentials are missing or not valid.",
        "headers": {
            "OXP-Version": {"$ref": "#/components/headers/OxpVersion"},
            "WWW-Authenticate": {
                "description": "The required credentials: RFC 9110, section 11.6.1.",
                "schema": {"type": "string"},
            },
        },
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ServerError"}}},
    })
}

/// Returns the requirement of a tool that needs more scopes than every call does.
pub(super) fn requirement(auth: &Auth, tool: &ToolParts) -> Option<Value> {
    let all = required_scopes(auth, Some(tool));
    let schemes = schemes_of(auth);
    let has_own = all != required_scopes(auth, None);
    let scopes: Vec<_> = all.into_iter().collect();
    (has_own && !schemes.is_empty()).then(|| alternatives(&schemes, &scopes))
}

/// Returns the scopes that a call of the tool requires; without a tool, those of every call.
fn required_scopes<'a>(auth: &'a Auth, tool: Option<&'a ToolParts>) -> BTreeSet<&'a str> {
    let of_tool = tool.into_iter().flat_map(|tool| &tool.scopes);
    let all = auth.scopes().iter().chain(of_tool);
    all.map(String::as_str).collect()
}

/// Returns one requirement for each scheme: any of them is enough.
fn alternatives(schemes: &[Scheme], scopes: &[&str]) -> Value {
    let alternative = |(name, _, has_scopes): &Scheme| {
        let scopes = if *has_scopes { scopes } else { &[] };
        Value::Object(Map::from_iter([(name.clone(), json!(scopes))]))
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
    if auth.accepts_gateway {
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
    use crate::{ApiKeys, Failure, Server, Tool, Toolkit};

    fn document(auth: impl Into<Auth>) -> Value {
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        let input = || json!({"type": "object"});
        let tools = [
            Tool::dynamic("Mail.Read@1.0.0", "Reads.", input(), Value::Null, nothing),
            Tool::dynamic("Mail.Send@1.0.0", "Sends.", input(), Value::Null, nothing)
                .scope("mail.send"),
        ];
        Server::new(Toolkit::new(tools).unwrap())
            .auth(auth)
            .openapi()
    }

    fn has_401(document: &Value, path: &str, method: &str) -> bool {
        document["paths"][path][method]["responses"]
            .get("401")
            .is_some()
    }

    #[test]
    fn a_key_may_be_sent_in_either_header() {
        let document = document(ApiKeys::with_ids(["KEY"]));
        assert_eq!(
            document["security"],
            json!([{"apiKey": []}, {"bearer": []}])
        );
        assert!(has_401(&document, "/tools", "get"));
        assert!(has_401(&document, "/tools/Mail.Send@1.0.0/call", "post"));
        assert!(!has_401(&document, "/health", "get"));
        assert_eq!(document["paths"]["/health"]["get"]["security"], json!([]));
    }

    #[cfg(feature = "oidc")]
    #[test]
    fn each_issuer_has_a_scheme_and_each_tool_its_scopes() {
        use crate::Oidc;

        let auth = Auth::from(Oidc::issuer("https://idp.example/"))
            .or(Oidc::issuer("https://other.example"))
            .scope("tools.call");
        let document = document(auth);
        let schemes = &document["components"]["securitySchemes"];
        assert_eq!(
            schemes["signIn"]["openIdConnectUrl"],
            "https://idp.example/.well-known/openid-configuration"
        );
        assert!(schemes["signIn2"].is_object());
        let required = |scopes: Value| json!([{"signIn": scopes}, {"signIn2": scopes}]);
        assert_eq!(document["security"], required(json!(["tools.call"])));
        let call = |id: &str| &document["paths"][format!("/tools/{id}/call")]["post"];
        assert!(call("Mail.Read@1.0.0").get("security").is_none());
        let both = required(json!(["mail.send", "tools.call"]));
        assert_eq!(call("Mail.Send@1.0.0")["security"], both);
    }
}
