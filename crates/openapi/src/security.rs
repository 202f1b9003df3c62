//! The security schemes of a document as credentials: secrets of the owner, or tokens of the user.
//!
//! A model neither sees nor chooses credentials.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    choice::matches, document::Document, operation::Operation, parameters::is_of_connection,
    plan::Credential, servers,
};

/// The owner's options for credentials.
#[derive(Clone, Debug, Default)]
pub(crate) struct CredentialOptions {
    /// The ids of secrets, by the names of schemes.
    pub(crate) secrets: BTreeMap<String, String>,
    /// The id of the secret of an API whose document has no schemes.
    pub(crate) bearer: Option<String>,
    /// The names of the schemes to use where there are alternatives.
    pub(crate) preferred: Vec<String>,
}

/// The scopes that an operation needs of each scheme.
pub(crate) type Needs = BTreeMap<String, Vec<String>>;

/// Chooses the schemes of an operation among the alternatives of the document: OpenAPI 3.1, Security
/// Requirement Object.
pub(crate) fn needs_of(
    operation: &Operation,
    document: &Document,
    credentials: &BTreeMap<String, Result<Credential, String>>,
    options: &CredentialOptions,
) -> Result<Needs, String> {
    if options.bearer.is_some() {
        return Ok(Needs::from([(BEARER.to_owned(), Vec::new())]));
    }
    let listed = operation
        .object
        .get("security")
        .or_else(|| document.root().get("security"));
    let alternatives: Vec<Needs> = listed
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|it| it.as_object().map(needs_in))
        .collect();
    let is_possible = |needs: &&Needs| {
        let mut schemes = needs.keys();
        schemes.all(|scheme| matches!(credentials.get(scheme), Some(Ok(_))))
    };
    let is_preferred = |needs: &&Needs| {
        let mut schemes = needs.keys();
        !needs.is_empty() && schemes.all(|scheme| options.preferred.contains(scheme))
    };
    let possible: Vec<&Needs> = alternatives.iter().filter(is_possible).collect();
    let chosen = possible.iter().find(|it| is_preferred(it));
    let chosen = chosen.or_else(|| possible.iter().find(|it| !it.is_empty()));
    match chosen.or_else(|| possible.first()) {
        Some(needs) => Ok((*needs).clone()),
        None if alternatives.is_empty() => Ok(Needs::new()),
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
        scopes
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    requirement
        .iter()
        .map(|(scheme, it)| (scheme.clone(), scopes(it)))
        .collect()
}

fn impossible(
    alternatives: &[Needs],
    credentials: &BTreeMap<String, Result<Credential, String>>,
) -> String {
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
    format!("it needs code for its credentials: {}", reasons.join("; "))
}

/// Returns the credentials of all schemes of a document, or why a scheme has none.
pub(crate) fn credentials_in(
    document: &Document,
    toolkit: &str,
    options: &CredentialOptions,
) -> BTreeMap<String, Result<Credential, String>> {
    if let Some(secret) = &options.bearer {
        let credential = bearer(secret.clone());
        return BTreeMap::from([(BEARER.to_owned(), Ok(credential))]);
    }
    let schemes = document.root()["components"]["securitySchemes"].as_object();
    let of = |(name, scheme): (&String, &Value)| {
        let scheme = document.resolve(scheme).unwrap_or(&Value::Null);
        let (named, made) = (options.secrets.get(name), secret_id(toolkit, name));
        let is_reserved = named.is_none() && RESERVED.split(' ').any(|it| matches(it, &made));
        let credential = credential_of(scheme, toolkit, named.unwrap_or(&made).clone());
        let is_free = |it: &Credential| !is_reserved || it.secrets().is_empty();
        let credential = credential.and_then(|it| {
            let error =
                format!("would have the secret {made}, which is reserved: name another one");
            Some(it).filter(is_free).ok_or(error)
        });
        (name.clone(), credential)
    };
    schemes.into_iter().flatten().map(of).collect()
}

fn bearer(secret: String) -> Credential {
    Credential::Header {
        name: "Authorization".to_owned(),
        secret,
        prefix: "Bearer ".to_owned(),
    }
}

fn credential_of(scheme: &Value, toolkit: &str, secret: String) -> Result<Credential, String> {
    let text = |field: &str| scheme[field].as_str().unwrap_or_default();
    let is_http = |name: &str| text("scheme").eq_ignore_ascii_case(name);
    let name = || text("name").to_owned();
    match (text("type"), text("in")) {
        ("http", _) if is_http("bearer") => Ok(bearer(secret)),
        ("http", _) if is_http("basic") => Ok(Credential::Basic { secret }),
        ("apiKey", "header") if is_of_connection(text("name")) => {
            Err("is in a header that belongs to the connection".to_owned())
        }
        ("apiKey", "header") => Ok(Credential::Header {
            name: name(),
            secret,
            prefix: String::new(),
        }),
        ("apiKey", "query") => Ok(Credential::Query {
            name: name(),
            secret,
        }),
        ("apiKey", "cookie") => Ok(Credential::Cookie {
            name: name(),
            secret,
        }),
        ("oauth2", _) => of_flows(&scheme["flows"], toolkit, &secret),
        ("openIdConnect", _) => Err(
            "names its provider by OpenID discovery; add the URLs of the \
             flow `authorizationCode` with an overlay"
                .to_owned(),
        ),
        (kind, _) => Err(format!(
            "is of the type {:?}",
            if kind.is_empty() { "unknown" } else { kind }
        )),
    }
}

fn of_flows(flows: &Value, toolkit: &str, secret: &str) -> Result<Credential, String> {
    let url = |flow: &str, field: &str| match flows[flow][field].as_str() {
        Some(url) if !servers::is_endpoint(url) => Err(format!("has no https URL in `{field}`")),
        url => Ok(url.map(str::to_owned)),
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
    match url("clientCredentials", "tokenUrl")? {
        Some(token_url) => Ok(Credential::Client {
            token_url,
            client_id: format!("{secret}_CLIENT_ID"),
            client_secret: format!("{secret}_CLIENT_SECRET"),
        }),
        None => Err("has neither the flow authorizationCode nor clientCredentials".to_owned()),
    }
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
        let begins_word = character.is_ascii_uppercase() && was_lower;
        let separates = begins_word || !character.is_ascii_alphanumeric();
        if separates && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        if character.is_ascii_alphanumeric() {
            snake.push(character.to_ascii_uppercase());
        }
        was_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    snake.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::secret_id;

    #[test]
    fn ids_of_secrets_name_the_api_and_the_scheme() {
        for (toolkit, scheme, id) in [
            (
                "Figma",
                "PersonalAccessToken",
                "FIGMA_PERSONAL_ACCESS_TOKEN",
            ),
            (
                "Asana",
                "personalAccessToken",
                "ASANA_PERSONAL_ACCESS_TOKEN",
            ),
            ("Plaid", "PLAID-CLIENT-ID", "PLAID_CLIENT_ID"),
            (
                "Twilio",
                "accountSid_authToken",
                "TWILIO_ACCOUNT_SID_AUTH_TOKEN",
            ),
            ("Pets", "key", "PETS_KEY"),
        ] {
            assert_eq!(secret_id(toolkit, scheme), id);
        }
    }
}
