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
    if let Some((_, place)) = challenge.split_once("resource_metadata=\"") {
        places.insert(0, place.split('"').next().unwrap_or_default().to_owned());
    }
    let mut facts = find(client, &places);
    let resource = text(&facts["document"]["resource"]).trim_end_matches('/');
    facts["rest"] = json!(url.as_str().strip_prefix(resource));
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

/// Asks for each endpoint whether a page of another origin may use it.
pub(super) fn browsers(client: &mut Client) -> Result<Value, Error> {
    /// That of MCP's Inspector.
    const ORIGIN: &str = "http://localhost:6274";
    let server = &client.known["authorization server"]["document"];
    let endpoints = ["token_endpoint", "registration_endpoint"].map(|it| &server[it]);
    let metadata = &client.known["resource metadata"]["place"];
    let places = endpoints.into_iter().chain([metadata]);
    let mut blocked = Vec::new();
    for place in places.filter_map(Value::as_str).chain([""]) {
        let url = client.options.url.join(place)?;
        let request = client.http.request(Method::OPTIONS, url.clone());
        let request = request.header("origin", ORIGIN);
        let response = client.send(request.header("access-control-request-method", "POST"))?;
        let allowed = &response["headers"]["access-control-allow-origin"];
        if allowed != "*" && allowed != ORIGIN {
            blocked.push(url.path().to_owned());
        }
    }
    Ok(json!({"blocked": blocked.join(", ")}))
}
