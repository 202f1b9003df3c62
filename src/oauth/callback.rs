//! The provider's redirect back to the server.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    broker::Broker,
    challenge::parse_id,
    page::{CallbackPage, CallbackQuery},
    redemption::Redemption,
    state::{OAuthState, StateBinding, cookie_in, cookie_name, split_state},
};
use crate::StoreError;

impl Broker {
    /// Handles the provider's redirect, and completes the challenge.
    pub(crate) async fn callback(
        self: &Arc<Self>,
        provider: &str,
        query: CallbackQuery,
        base: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<CallbackPage, StoreError> {
        let (Some(provider), Some(base)) = (self.provider(provider), self.base_url(base)) else {
            return Ok(CallbackPage::Expired);
        };
        let Some((id, expiry, tag)) = query.state.as_deref().and_then(split_state) else {
            return Ok(CallbackPage::OtherBrowser);
        };
        let name = cookie_name(id, base.starts_with("https://"));
        let (Some(browser), Some((hash, nonce))) = (cookie_in(headers, &name), parse_id(id)) else {
            return Ok(CallbackPage::OtherBrowser);
        };
        let keys = self.keys(None).await?;
        let binding = StateBinding {
            challenge: id,
            provider: &provider.id,
            browser,
        };
        let now = self.clock.now();
        let Some(verifier) = OAuthState::verifier_of(&keys, &binding, expiry, tag, now) else {
            return Ok(CallbackPage::OtherBrowser);
        };
        let redemption = Redemption {
            broker: Arc::clone(self),
            keys,
            provider: Arc::clone(provider),
            redirect: provider.redirect_uri(&base),
            verifier,
            record_id: format!("challenge#{hash}"),
            nonce: nonce.to_owned(),
        };
        // In a task, because the browser may disconnect and a code works only once.
        let page = tokio::spawn(redemption.run(query)).await;
        page.unwrap_or(Ok(CallbackPage::Unavailable))
    }
}
