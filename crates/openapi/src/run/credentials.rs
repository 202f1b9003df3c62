//! The credentials of a request. They go to the API alone, in the place that the document names.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use lambda_tools_core::{Context, Failure, Secret};

use super::Api;
use crate::plan::{ApiTool, Credential};

/// A credential in its place.
pub(super) enum Sent {
    Header(String, HeaderValue),
    Query(String, Secret),
    Cookie(String, Secret),
}

impl Api {
    /// Returns the credentials of a call.
    pub(super) async fn credentials_of(
        &self,
        plan: &ApiTool,
        cx: &Context,
    ) -> Result<Vec<Sent>, Failure> {
        let mut all = Vec::new();
        for credential in self.schemes_of(plan) {
            all.push(self.sent(credential, plan, cx, None).await?);
        }
        Ok(all)
    }

    fn schemes_of(&self, plan: &ApiTool) -> impl Iterator<Item = &Credential> {
        let schemes = plan.credentials.keys();
        schemes.filter_map(|scheme| self.settings.credentials.get(scheme))
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
        for credential in self.schemes_of(plan) {
            let mut fresh = None;
            match credential {
                Credential::User { provider, .. } => return Err(cx.token_rejected(provider)),
                Credential::Client { .. } => is_other |= self.tokens.forget(credential).await,
                Credential::Header { secret, .. }
                | Credential::Query { secret, .. }
                | Credential::Cookie { secret, .. }
                | Credential::Basic { secret } => {
                    fresh = cx.secret_rejected(secret).await;
                    is_other |= fresh.is_some();
                }
            }
            all.push(self.sent(credential, plan, cx, fresh).await?);
        }
        Ok(is_other.then_some(all))
    }

    /// Returns one credential, with a newer value of its secret if there is one.
    async fn sent(
        &self,
        credential: &Credential,
        plan: &ApiTool,
        cx: &Context,
        fresh: Option<Secret>,
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
            Credential::Client { .. } => {
                let token = self.tokens.token(credential, plan, self, cx).await?;
                header("Authorization", "Bearer ", &token)?
            }
        })
    }
}

fn header(name: &str, prefix: &str, secret: &Secret) -> Result<Sent, Failure> {
    let value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose().trim()));
    let mut value = value.map_err(|_| {
        Failure::new("The tool could not complete the call").developer_message(format!(
            "the secret for the header {name} has characters that no header can have"
        ))
    })?;
    value.set_sensitive(true);
    Ok(Sent::Header(name.to_owned(), value))
}
