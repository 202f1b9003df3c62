//! The security schemes of a document as credentials: secrets of the owner, or tokens of the user.
//!
//! A model neither sees nor chooses credentials.

use std::collections::BTreeMap;

use lambda_tools_core::text::matches;
use lambda_tools_schema::document::Document;
use serde_json::{Map, Value};

use crate::{
    Note, OpenApiError, OpenApiOptions, error::all_known, operation::Operation,
    parameters::is_of_connection, plan::Credential, servers,
};

/// Checks that the document has the schemes that options name.
pub(crate) fn check(options: &OpenApiOptions, document: &Document) -> Result<(), OpenApiError> {
    let known = || schemes_in(document).map(|(name, _)| name.as_str());
    let noun = "security scheme";
    all_known(noun, "--secret", options.secrets.keys(), known())?;
    all_known(noun, "--security", options.security.keys(), known())
}

/// The credentials of the schemes of a document, or why a scheme has none.
pub(crate) type Known = BTreeMap<String, Result<Credential, String>>;

fn schemes_in(document: &Document) -> impl Iterator<Item = (&String, &Value)> {
    let schemes = document.root()["components"]["securitySchemes"].as_object();
    schemes.into_iter().flatten()
}

/// The scopes that an operation needs of each scheme.
pub(crate) type Needs = BTreeMap<String, Vec<String>>;

/// Chooses the schemes of an operation among the alternatives of the document: OpenAPI 3.1, Security
/// Requirement Object. Also returns what the owner should know about it.
pub(crate) fn needs_of(
    operation: &Operation,
    document: &Document,
    credentials: &Known,
    options: &OpenApiOptions,
) -> Result<(Needs, Option<String>), String> {
    if options.bearer.is_some() {
        return Ok((Needs::from([(BEARER.to_owned(), Vec::new())]), None));
    }
    let is_known = |scheme: &String| matches!(credentials.get(scheme), Some(Ok(_)));
    let own = operation.object.get("security");
    let Some(listed) = own.or_else(|| document.root().get("security")) else {
        let chosen = options.security.keys().filter(|it| is_known(it));
        let chosen = chosen.map(|scheme| (scheme.clone(), Vec::new()));
        return Ok((chosen.collect(), None));
    };
    let listed = listed.as_array().into_iter().flatten();
    let listed = listed.filter_map(Value::as_object);
    let alternatives: Vec<Needs> = listed.map(needs_in).collect();
    let is_possible = |needs: &&Needs| needs.keys().all(is_known);
    let is_preferred = |needs: &&Needs| {
        let mut schemes = needs.keys();
        !needs.is_empty() && schemes.all(|scheme| options.security.contains_key(scheme))
    };
    let possible: Vec<&Needs> = alternatives.iter().filter(is_possible).collect();
    let chosen = possible.iter().find(|it| is_preferred(it));
    let chosen = chosen.or_else(|| possible.iter().find(|it| !it.is_empty()));
    match chosen.or_else(|| possible.first()) {
        Some(needs) => {
            let is_without = needs.is_empty() && alternatives.len() > 1;
            let note = is_without.then(|| impossible(&alternatives, credentials));
            let note = note.map(|it| format!("it is called without credentials; with them, {it}"));
            Ok(((*needs).clone(), note))
        }
        None if alternatives.is_empty() => Ok((Needs::new(), None)),
        None => Err(impossible(&alternatives, credentials)),
    }
}

/// The variables that servers, their platforms and processes read themselves; `*` is any text. A
/// document, which names its schemes, must not choose among them.
const RESERVED: &str = "_* TOOLS_* AWS_* LAMBDA_* LD_* DYLD_* LC_* RUST_* CARGO_* SSL_CERT_* MALLOC_* GLIBC_* OTEL_* \
    OAUTH_CLIENT_* API_URL PATH HOME SHELL USER LOGNAME HOSTNAME PWD TMPDIR TERM TZ TZDIR LANG LANGUAGE LOCPATH \
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY HOSTALIASES LOCALDOMAIN RES_OPTIONS GCONV_PATH RESOLV_* BASH_ENV \
    HOST PORT LOG_FORMAT LOG_CALLS RECORD_EVENTS UPDATE_EXPECTED SHUTDOWN_SECONDS";

/// The name of the scheme of an API whose document has none.
pub(crate) const BEARER: &str = "bearer";

fn needs_in(requirement: &Map<String, Value>) -> Needs {
    let scopes = |value: &Value| {
        let scopes = value.as_array().into_iter().flatten();
        let scopes = scopes.filter_map(Value::as_str);
        scopes.map(str::to_owned).collect()
    };
    let need = |(scheme, it): (&String, &Value)| (scheme.clone(), scopes(it));
    requirement.iter().map(need).collect()
}

fn impossible(alternatives: &[Needs], credentials: &Known) -> String {
    let schemes = alternatives.iter().flat_map(Needs::keys);
    let reasons = schemes.filter_map(|scheme| match credentials.get(scheme) {
        Some(Ok(_)) => None,
        Some(Err(reason)) => Some(format!("{scheme} {reason}")),
        None => Some(format!(
            "the document does not describe the security scheme {scheme}"
        )),
    });
    let mut reasons: Vec<_> = reasons.collect();
    reasons.dedup();
    format!(
        "it needs code for its credentials: {}; --bearer SECRET_ID sends a token that you have",
        reasons.join("; ")
    )
}

/// Returns the credentials of all schemes of a document, or why a scheme has none.
pub(crate) fn credentials_in(
    document: &Document,
    toolkit: &str,
    base: &str,
    options: &OpenApiOptions,
) -> Known {
    if let Some(secret) = &options.bearer {
        let credential = bearer(secret.clone());
        return BTreeMap::from([(BEARER.to_owned(), Ok(credential))]);
    }
    let of = |(name, scheme): (&String, &Value)| {
        let scheme = document.resolve(scheme).unwrap_or(&Value::Null);
        let (named, made) = (options.secrets.get(name), secret_id(toolkit, name));
        let is_reserved = named.is_none() && RESERVED.split(' ').any(|it| matches(it, &made));
        let secret = named.unwrap_or(&made).clone();
        let flow = options.security.get(name).and_then(Option::as_deref);
        let credential = match scheme["type"].as_str() {
            Some("oauth2") => of_flows(scheme, toolkit, &secret, base, flow),
            _ => credential_of(scheme, secret),
        };
        let is_free = |it: &Credential| !is_reserved || it.secrets().is_empty();
        let credential = credential.and_then(|it| {
            let error = format!(
                "would have the secret {made}, which is reserved: name another one with --secret"
            );
            Some(it).filter(is_free).ok_or(error)
        });
        (name.clone(), credential)
    };
    schemes_in(document).map(of).collect()
}

/// Returns what the owner should know about the document's schemes.
pub(crate) fn notes_on(document: &Document, used: &BTreeMap<String, Credential>) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |text: String| notes.push(Note::new("the document".to_owned(), text));
    let is_user = |name: &String| matches!(used.get(name), Some(Credential::User { .. }));
    for (name, scheme) in schemes_in(document).filter(|(name, _)| is_user(name)) {
        if scheme["flows"]["clientCredentials"].is_object() {
            note(format!(
                "the security scheme {name} also has the flow clientCredentials, which needs no user; \
                 --security {name}:clientCredentials chooses it"
            ));
        }
    }
    let operations = Operation::all(document);
    let own = operations.iter().filter_map(|it| it.object.get("security"));
    let mut all = own.chain(document.root().get("security"));
    let uses_any = all.any(|it| it.as_array().is_some_and(|it| !it.is_empty()));
    let names = schemes_in(document).map(|(name, _)| name.as_str());
    let names: Vec<_> = names.collect();
    if used.is_empty() && !uses_any && !names.is_empty() {
        note(format!(
            "no operation uses its security schemes ({}); --security SCHEME or --bearer SECRET_ID sends credentials",
            names.join(", ")
        ));
    }
    notes
}

fn bearer(secret: String) -> Credential {
    Credential::Header {
        name: "Authorization".to_owned(),
        secret,
        prefix: "Bearer ".to_owned(),
    }
}

fn credential_of(scheme: &Value, secret: String) -> Result<Credential, String> {
    let text = |field: &str| scheme[field].as_str().unwrap_or_default();
    let is_http = |name: &str| text("scheme").eq_ignore_ascii_case(name);
    let name = text("name").to_owned();
    match (text("type"), text("in")) {
        ("http", _) if is_http("bearer") => Ok(bearer(secret)),
        ("http", _) if is_http("basic") => Ok(Credential::Basic { secret }),
        ("apiKey", "header") if is_of_connection(&name) => {
            Err("is in a header that belongs to the connection".to_owned())
        }
        ("apiKey", "header") => Ok(Credential::Header {
            name,
            secret,
            prefix: String::new(),
        }),
        ("apiKey", "query") => Ok(Credential::Query { name, secret }),
        ("apiKey", "cookie") => Ok(Credential::Cookie { name, secret }),
        ("http", _) => Err(format!("has the HTTP scheme {:?}", text("scheme"))),
        ("openIdConnect", _) => Err(
            "names its provider by OpenID discovery; add the URLs of the \
             flow `authorizationCode` with an overlay"
                .to_owned(),
        ),
        ("", _) => Err("is of the type \"unknown\"".to_owned()),
        (kind, _) => Err(format!("is of the type {kind:?}")),
    }
}

fn of_flows(
    scheme: &Value,
    toolkit: &str,
    secret: &str,
    base: &str,
    chosen: Option<&str>,
) -> Result<Credential, String> {
    let flows = &scheme["flows"];
    let url = |flow: &str, field: &str| {
        let url = flows[flow][field].as_str();
        let Some(url) = url.filter(|_| chosen.is_none_or(|it| it == flow)) else {
            return Ok(None);
        };
        let resolved = servers::resolved(Some(base), url).filter(|it| servers::is_endpoint(it));
        let error = || format!("has no https URL in `{field}`");
        resolved.map(Some).ok_or_else(error)
    };
    let authorize_url = url("authorizationCode", "authorizationUrl")?;
    let user = authorize_url.zip(url("authorizationCode", "tokenUrl")?);
    if let Some((authorize_url, token_url)) = user {
        let provider = toolkit.to_ascii_lowercase();
        return Ok(Credential::User {
            provider,
            authorize_url,
            token_url,
        });
    }
    if let Some(token_url) = url("clientCredentials", "tokenUrl")? {
        return Ok(Credential::Client {
            token_url,
            client_id: format!("{secret}_CLIENT_ID"),
            client_secret: format!("{secret}_CLIENT_SECRET"),
        });
    }
    let names = flows.as_object().into_iter().flat_map(Map::keys);
    let names = names.map(String::as_str).collect::<Vec<_>>().join(" and ");
    Err(match chosen {
        Some(flow) => format!("has no usable flow {flow}, but {names}"),
        None => format!("has only the flow {names}"),
    })
}

/// Returns the id of a scheme's secret: `FIGMA_PERSONAL_ACCESS_TOKEN`.
fn secret_id(toolkit: &str, scheme: &str) -> String {
    let toolkit = toolkit.to_ascii_uppercase();
    let scheme = upper_snake(scheme);
    match scheme.strip_prefix(&*toolkit) {
        Some(rest) if rest.starts_with('_') => scheme,
        _ => format!("{toolkit}_{scheme}"),
    }
}

/// Returns a name in capitals, with underscores between its words.
fn upper_snake(name: &str) -> String {
    let mut snake = String::new();
    let mut was_lower = false;
    for character in name.chars() {
        if character.is_ascii_uppercase() && was_lower {
            snake.push('_');
        }
        snake.push(character.to_ascii_uppercase());
        was_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    let words = snake.split(|it: char| !it.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|it| !it.is_empty()).collect();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::secret_id;

    #[test]
    fn ids_of_secrets_name_the_api_and_the_scheme() {
        for row in [
            "Figma PersonalAccessToken FIGMA_PERSONAL_ACCESS_TOKEN",
            "Asana personalAccessToken ASANA_PERSONAL_ACCESS_TOKEN",
            "Plaid PLAID-CLIENT-ID PLAID_CLIENT_ID",
            "Twilio accountSid_authToken TWILIO_ACCOUNT_SID_AUTH_TOKEN",
            "Pets key PETS_KEY",
        ] {
            let (names, id) = row.rsplit_once(' ').unwrap();
            let (toolkit, scheme) = names.split_once(' ').unwrap();
            assert_eq!(secret_id(toolkit, scheme), id);
        }
    }
}
