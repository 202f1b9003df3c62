//! The way back from the provider.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    broker::Broker,
    challenge::parse_id,
    page::{CallbackPage, CallbackQuery},
    redemption::Redemption,
    state::{OAuthState, StateBinding, cookie_in, cookie_name, parts_of},
};
use crate::StoreError;

impl Broker {
    /// The provider's redirect: the end of a challenge.
    pub(crate) async fn callback(
        self: &Arc<Self>,
        provider: &str,
        back: CallbackQuery,
        base: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<CallbackPage, StoreError> {
        let (Some(provider), Some(base)) = (self.provider(provider), self.base(base)) else {
            return Ok(CallbackPage::Expired);
        };
        let Some((id, until, tag)) = back.state.as_deref().and_then(parts_of) else {
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
        let Some(verifier) = OAuthState::verifier_of(&keys, &binding, until, tag, now) else {
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
        // A task of its own: a code works once, and the browser may leave.
        let done = tokio::spawn(redemption.run(back)).await;
        done.unwrap_or(Ok(CallbackPage::Unavailable))
    }
}
