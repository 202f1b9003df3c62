//! The credentials of a request. They go to the API alone, in the place that the document names.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use lambda_tools_core::{Context, Failure, Secret};

use super::{Api, token::TokenRequest};
use crate::plan::{ApiTool, Credential};

/// A credential in its place.
pub(super) enum Sent {
    Header(String, HeaderValue),
    Query(String, Secret),
    Cookie(String, Secret),
}

/// A security scheme of an operation, with the scopes that it needs.
type Scheme<'a> = (&'a Credential, &'a [String]);

impl Api {
    /// Returns the credentials of a call.
    pub(super) async fn credentials_of(
        &self,
        plan: &ApiTool,
        cx: &Context,
    ) -> Result<Vec<Sent>, Failure> {
        let mut all = Vec::new();
        for scheme in self.schemes_of(plan) {
            all.push(self.sent(scheme, plan, cx, None, false).await?);
        }
        Ok(all)
    }

    /// Returns the schemes of an operation, with the scopes that it needs.
    fn schemes_of<'a>(&'a self, plan: &'a ApiTool) -> impl Iterator<Item = Scheme<'a>> {
        let schemes = plan.credentials.iter();
        schemes.filter_map(|(it, scopes)| Some((self.settings.credentials.get(it)?, &**scopes)))
    }

    /// Returns other credentials after the API has refused these, if there are any: a secret may have
    /// been changed since it was read, and a token may have been revoked. A refused token of the user
    /// is a failure that makes the client ask for a new one.
    pub(super) async fn renewed(
        &self,
        plan: &ApiTool,
        cx: &Context,
    ) -> Result<Option<Vec<Sent>>, Failure> {
        let mut all = Vec::new();
        let mut is_other = false;
        for scheme in self.schemes_of(plan) {
            let mut fresh = None;
            match scheme.0 {
                Credential::User { provider, .. } => return Err(cx.token_rejected(provider)),
                Credential::Client { .. } => is_other = true,
                Credential::Header { secret, .. }
                | Credential::Query { secret, .. }
                | Credential::Cookie { secret, .. }
                | Credential::Basic { secret } => {
                    fresh = cx.secret_rejected(secret).await;
                    is_other |= fresh.is_some();
                }
            }
            all.push(self.sent(scheme, plan, cx, fresh, true).await?);
        }
        Ok(is_other.then_some(all))
    }

    /// Returns one credential, with a newer value of its secret if there is one, and with another
    /// token if the API has refused the last one.
    async fn sent(
        &self,
        (credential, scopes): Scheme<'_>,
        plan: &ApiTool,
        cx: &Context,
        fresh: Option<Secret>,
        is_refused: bool,
    ) -> Result<Sent, Failure> {
        let value = |id: &str| match fresh {
            Some(secret) => Ok(secret),
            None => cx.secret(id).cloned(),
        };
        Ok(match credential {
            Credential::Header {
                name,
                secret,
                prefix,
            } => header(name, prefix, &value(secret)?)?,
            Credential::Query { name, secret } => Sent::Query(name.clone(), value(secret)?),
            Credential::Cookie { name, secret } => Sent::Cookie(name.clone(), value(secret)?),
            Credential::Basic { secret } => {
                let login = STANDARD.encode(value(secret)?.expose()).into();
                header("Authorization", "Basic ", &login)?
            }
            Credential::User { provider, .. } => {
                header("Authorization", "Bearer ", cx.token(provider)?)?
            }
            Credential::Client {
                token_url,
                client_id,
                client_secret,
            } => {
                let login = [cx.secret(client_id)?, cx.secret(client_secret)?];
                let asked = TokenRequest::new(token_url, login, scopes);
                let tokens = self
                    .tokens
                    .token(&asked, is_refused, plan, &self.client, cx);
                header("Authorization", "Bearer ", &tokens.await?)?
            }
        })
    }
}

fn header(name: &str, prefix: &str, secret: &Secret) -> Result<Sent, Failure> {
    let value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose().trim()));
    let mut value = value.map_err(|_| unusable("header", name))?;
    value.set_sensitive(true);
    Ok(Sent::Header(name.to_owned(), value))
}

/// Returns the failure of a secret that has no place in a header or a cookie.
pub(super) fn unusable(place: &str, name: &str) -> Failure {
    Failure::new("The tool could not complete the call").developer_message(format!(
        "the secret for the {place} {name} has characters that no {place} can have"
    ))
}
