//! The caller that the platform has authenticated, with IAM or with an API Gateway authorizer.
//!
//! It is read from the platform's request context, never from the request's headers, which anyone
//! can set.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use lambda_http::aws_lambda_events::apigw::{
    ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer, ApiGatewayV2httpRequestContext,
};
use serde_json::Value;

use crate::{AccessToken, Caller, store::hash_of_texts};

/// A caller that the platform has authenticated.
pub(super) struct Principal {
    pub(super) caller: Caller,
    /// The caller for a server that relies on the platform: the holder of a token, if the platform
    /// has verified one. `None` if the token does not name its issuer and its holder.
    pub(super) verified: Option<Caller>,
}

impl From<Caller> for Principal {
    fn from(caller: Caller) -> Self {
        let verified = Some(caller.clone());
        Self { caller, verified }
    }
}

/// Returns the caller of a REST API, or of an HTTP API with payload format 1.0.
pub(super) fn of_rest(context: &ApiGatewayProxyRequestContext) -> Option<Principal> {
    let identity = &context.identity;
    let arn = identity.user_arn.as_deref();
    let cognito = identity.cognito_identity_id.as_deref();
    let authorizer = &context.authorizer;
    // Lambda authorizers always name a principal, and their own fields may have any name.
    let is_lambda = authorizer.fields.contains_key("principalId");
    of_iam(arn, cognito).or_else(|| of_authorizer(authorizer, is_lambda))
}

/// Returns the caller of an HTTP API or a Function URL.
pub(super) fn of_http(context: &ApiGatewayV2httpRequestContext) -> Option<Principal> {
    let authorizer = context.authorizer.as_ref()?;
    let iam = authorizer.iam.as_ref();
    let cognito = iam.and_then(|iam| iam.cognito_identity.as_ref()?.identity_id.as_deref());
    let arn = iam.and_then(|iam| iam.user_arn.as_deref());
    let is_lambda = authorizer.jwt.is_none();
    of_iam(arn, cognito).or_else(|| of_authorizer(authorizer, is_lambda))
}

/// Returns the caller that IAM has authenticated. All users of a Cognito identity pool share a
/// role, so the role's ARN alone does not identify a user.
fn of_iam(arn: Option<&str>, cognito: Option<&str>) -> Option<Principal> {
    let arn = arn.filter(|arn| !arn.is_empty())?;
    let principal = match cognito.filter(|id| !id.is_empty()) {
        Some(id) => format!("{arn} {id}").into(),
        None => arn.into(),
    };
    Some(Caller::Iam { principal }.into())
}

fn of_authorizer(authorizer: &ApiGatewayRequestAuthorizer, is_lambda: bool) -> Option<Principal> {
    let claims = claims_in(authorizer).filter(|claims| !claims.is_empty());
    let principal = match &claims {
        Some(claims) => of_claims(claims),
        None => of_fields(&authorizer.fields)?,
    };
    let principal = principal.into();
    let caller = Caller::Authorizer { principal };
    let verified = match &claims {
        Some(claims) if !is_lambda => token_of(claims).map(Caller::AccessToken),
        _ => Some(caller.clone()),
    };
    Some(Principal { caller, verified })
}

/// Returns the claims of a JWT: those of an HTTP API's authorizer, or, for REST APIs, of a Cognito
/// user pool.
fn claims_in(authorizer: &ApiGatewayRequestAuthorizer) -> Option<AuthorizerClaims<'_>> {
    if let Some(jwt) = &authorizer.jwt {
        let claims = jwt.claims.iter();
        let claims = claims.map(|(name, value)| (&**name, Value::from(&**value)));
        return Some(claims.collect());
    }
    let claims = authorizer.fields.get("claims")?.as_object()?.iter();
    let claims = claims.map(|(name, value)| (&**name, value.clone()));
    Some(claims.collect())
}

/// Returns the facts about a token's holder. `None` if the claims do not name the issuer and the
/// holder.
fn token_of(claims: &AuthorizerClaims<'_>) -> Option<Arc<AccessToken>> {
    let text = |name: &str| claims.get(name)?.as_str().filter(|it| !it.is_empty());
    let scopes = ["scope", "scp"].into_iter().filter_map(text);
    let groups = ["groups", "cognito:groups"].into_iter().filter_map(text);
    let user = text("sub");
    let client_id = text("client_id").or_else(|| text("azp"));
    user.or(client_id)?;
    let mut token = AccessToken::of(text("iss")?.into());
    token.user = user.map(str::to_owned);
    token.subject = user.map(str::to_owned);
    token.client_id = client_id.map(str::to_owned);
    token.scopes = scopes.flat_map(scopes_in).map(str::to_owned).collect();
    // API Gateway turns a list into a text, `[a b]` or `a,b`. A group may contain spaces and
    // commas, so the text cannot be separated.
    token.groups = groups.map(str::to_owned).collect();
    Some(Arc::new(token))
}

/// Returns the scopes in `a b`, or in `[a b]`, which API Gateway makes of a list. A scope may
/// contain a comma, but no space: RFC 6749, 3.3.
fn scopes_in(text: &str) -> impl Iterator<Item = &str> {
    let list = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let scopes = list.unwrap_or(text).split(' ');
    scopes.filter(|scope| !scope.is_empty())
}

type AuthorizerClaims<'a> = BTreeMap<&'a str, Value>;

/// Identifies the caller by issuer and subject: a subject is unique within its issuer (RFC 7519,
/// 4.1.2).
fn of_claims(claims: &AuthorizerClaims<'_>) -> String {
    let claim = |name: &str| claims.get(name)?.as_str();
    let issuer = claim("iss").unwrap_or_default();
    match (claim("sub"), claim("client_id")) {
        (Some(subject), _) => joined(["jwt", issuer, subject]),
        // Machine-to-machine tokens have a client ID instead of a subject.
        (None, Some(client)) => joined(["client", issuer, client]),
        (None, None) => hash_of(claims),
    }
}

/// Joins the parts with spaces, escaped so that different parts never produce the same text.
fn joined<const N: usize>(parts: [&str; N]) -> String {
    let parts = parts.map(|part| part.replace('%', "%25").replace(' ', "%20"));
    parts.join(" ")
}

/// Returns the principal in the fields of a Lambda authorizer. `None` if they say nothing: without
/// an authorizer, API Gateway sends fields whose values are null.
fn of_fields(fields: &HashMap<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name)?.as_str().filter(|it| !it.is_empty());
    if let Some(name) = text("principalId").or_else(|| text("sub")) {
        return Some(joined(["lambda", name]));
    }
    let fields: AuthorizerClaims<'_> = fields
        .iter()
        .map(|(name, value)| (&**name, value.clone()))
        .collect();
    let mut lasting = fields.iter().filter(|(name, _)| !CHANGING.contains(name));
    let says_something = lasting.any(|(_, value)| !is_blank(value));
    says_something.then(|| hash_of(&fields))
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The claims and fields that change between tokens or requests.
const CHANGING: [&str; 8] = [
    "auth_time",
    "exp",
    "iat",
    "integrationLatency",
    "jti",
    "nbf",
    "origin_jti",
    "requestId",
];

/// Identifies a caller without a name by all its claims except those that change. The claims are
/// hashed because they may contain tokens.
fn hash_of(claims: &AuthorizerClaims<'_>) -> String {
    let claims = claims.iter().filter(|(name, _)| !CHANGING.contains(name));
    let parts = claims.flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]);
    format!("hash {}", hash_of_texts(parts))
}
