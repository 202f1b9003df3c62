//! The documents that tell clients where to sign in.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::client::{Client, text};
use crate::{Error, source};

/// Reads the metadata of the resource (RFC 9728).
pub(super) fn resource(client: &mut Client) -> Result<Value, Error> {
    const ROOT: &str = "/.well-known/oauth-protected-resource";
    let first = &client.known["first request"];
    if first["status"] != 401 {
        return Ok(Value::Null);
    }
    let url = &client.options.url;
    let inserted = format!("{ROOT}{}", url.path());
    let mut places = vec![url.join(&inserted)?.into(), url.join(ROOT)?.into()];
    let challenge = text(&first["headers"]["www-authenticate"]);
    let parameter = |name: &str| {
        let (_, value) = challenge.split_once(&format!("{name}=\""))?;
        value.split('"').next()
    };
    if let Some(place) = parameter("resource_metadata") {
        places.insert(0, place.to_owned());
    }
    let mut facts = find(client, &places);
    let scopes = facts["document"]["scopes_supported"].as_array();
    let scopes: Vec<_> = scopes.into_iter().flatten().map(text).collect();
    facts["scope"] = json!(parameter("scope").unwrap_or(&scopes.join(" ")));
    let resource = text(&facts["document"]["resource"]).trim_end_matches('/');
    let is_own = Url::parse(resource).is_ok_and(|it| it.origin() == url.origin());
    facts["rest"] = json!(url.as_str().strip_prefix(resource).filter(|_| is_own));
    facts["has_key"] = client.options.key.is_some().into();
    Ok(facts)
}

/// Reads the metadata of the authorization server (RFC 8414, OpenID Connect Discovery).
pub(super) fn authorization_server(client: &mut Client) -> Result<Value, Error> {
    let issuer = &client.known["resource metadata"]["document"]["authorization_servers"][0];
    let Some(issuer) = issuer.as_str() else {
        return Ok(Value::Null);
    };
    let url = Url::parse(issuer)?;
    let path = url.path().trim_end_matches('/');
    let base = issuer.trim_end_matches('/');
    let root = base.strip_suffix(path).unwrap_or(base);
    let places = [
        format!("{root}/.well-known/oauth-authorization-server{path}"),
        format!("{root}/.well-known/openid-configuration{path}"),
        format!("{base}/.well-known/openid-configuration"),
    ];
    let mut facts = find(client, &places);
    facts["is_equal"] = (facts["document"]["issuer"] == issuer).into();
    facts["issuer"] = issuer.into();
    facts["has_client"] = client.options.client_id.is_some().into();
    Ok(facts)
}

/// Returns the first document that there is, and the places without one.
fn find(client: &Client, places: &[String]) -> Value {
    let (mut facts, mut missing) = (json!({}), Vec::new());
    // The first place comes last, so that its document stays.
    for place in places.iter().rev() {
        match client.document(place) {
            Ok(document) => facts = json!({"document": document, "place": place}),
            Err(why) => missing.push(format!("{place} ({})", source::causes(&*why))),
        }
    }
    facts["missing"] = missing.join(", ").into();
    facts
}

/// Sends what a page of another origin makes a browser send: a preflight before a request that does more
/// than read, and the origin in any case.
pub(super) fn browsers(client: &mut Client) -> Result<Value, Error> {
    /// That of MCP's Inspector.
    const ORIGIN: &str = "http://localhost:6274";
    let known = |it: &str| &client.known[it];
    let (resource, issuer) = (known("resource metadata"), known("authorization server"));
    let endpoints = ["token_endpoint", "registration_endpoint"];
    let [token, registration] = endpoints.map(|it| &issuer["document"][it]);
    let url = json!(source::without_secrets(client.options.url.to_string()));
    let of_tools = "authorization,content-type,mcp-protocol-version";
    let places = [
        ("server", &url, of_tools),
        ("resource", &resource["place"], ""),
        ("issuer", &issuer["place"], ""),
        ("token", token, "content-type"),
        ("registration", registration, "content-type"),
    ];
    let mut facts = json!({});
    for (name, place, headers) in places {
        let url = place.as_str().and_then(|it| client.named(it).ok());
        let Some(url) = url else { continue };
        let request = match headers {
            "" => client.http.get(url),
            _ => (client.http.request(Method::OPTIONS, url))
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", headers),
        };
        facts[name] = client.send(request.header("origin", ORIGIN))?;
        facts[name]["place"] = place.clone();
    }
    Ok(facts)
}
