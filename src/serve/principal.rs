//! Whom the platform has let through: IAM, or an authorizer of API Gateway.
//!
//! Read from what the platform says of the request, never from the request's headers, which
//! anybody can send.

use std::collections::HashMap;

use lambda_http::aws_lambda_events::apigw::{
    ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer, ApiGatewayV2httpRequestContext,
};
use serde_json::Value;

use crate::Caller;

/// REST APIs, and HTTP APIs in payload format 1.0.
pub(super) fn of_rest(context: &ApiGatewayProxyRequestContext) -> Option<Caller> {
    let identity = &context.identity;
    let arn = identity.user_arn.as_deref();
    let cognito = identity.cognito_identity_id.as_deref();
    of_iam(arn, cognito).or_else(|| of_authorizer(&context.authorizer))
}

/// HTTP APIs and Function URLs.
pub(super) fn of_http(context: &ApiGatewayV2httpRequestContext) -> Option<Caller> {
    let authorizer = context.authorizer.as_ref()?;
    let iam = authorizer.iam.as_ref();
    let cognito = iam.and_then(|iam| iam.cognito_identity.as_ref()?.identity_id.as_deref());
    let arn = iam.and_then(|iam| iam.user_arn.as_deref());
    of_iam(arn, cognito).or_else(|| of_authorizer(authorizer))
}

/// All users of a Cognito identity pool have the ARN of one role.
fn of_iam(arn: Option<&str>, cognito: Option<&str>) -> Option<Caller> {
    let arn = arn.filter(|arn| !arn.is_empty())?;
    let principal = match cognito.filter(|id| !id.is_empty()) {
        Some(id) => format!("{arn} {id}").into(),
        None => arn.into(),
    };
    Some(Caller::Iam { principal })
}

fn of_authorizer(authorizer: &ApiGatewayRequestAuthorizer) -> Option<Caller> {
    let of_jwt = authorizer.jwt.as_ref().map(|jwt| {
        let claim = |name: &str| jwt.claims.get(name).map(String::as_str);
        of_claims(claim)
    });
    let principal = of_jwt.or_else(|| of_fields(&authorizer.fields))?.into();
    Some(Caller::Authorizer { principal })
}

/// RFC 7519, 4.1.2: a subject is unique for its issuer.
fn of_claims<'a>(claim: impl Fn(&str) -> Option<&'a str>) -> String {
    // What tokens of programs have in its place.
    let subject = claim("sub").or_else(|| claim("client_id"));
    let parts = [claim("iss"), subject];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What a Lambda authorizer gives, and in REST APIs a Cognito user pool.
fn of_fields(fields: &HashMap<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name)?.as_str();
    if let Some(claims) = fields.get("claims").and_then(Value::as_object) {
        return Some(of_claims(|name| claims.get(name)?.as_str()));
    }
    let named = text("principalId").or_else(|| text("sub"));
    if let Some(named) = named.filter(|it| !it.is_empty()) {
        return Some(named.to_owned());
    }
    // REST APIs add how long the authorizer took.
    let fields = fields
        .iter()
        .filter(|(name, _)| *name != "integrationLatency");
    let mut all: Vec<_> = fields
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    all.sort_unstable();
    (!all.is_empty()).then(|| all.join(" "))
}
