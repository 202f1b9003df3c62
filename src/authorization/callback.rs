//! The way back from the provider.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    desk::Desk,
    page::{Back, Told},
    pending::halves_of,
    redemption::Redemption,
    state::{Journey, Trip, cookie_in, cookie_name, parts_of},
};
use crate::StoreError;

impl Desk {
    /// The provider's redirect: the end of a challenge.
    pub(crate) async fn callback(
        self: &Arc<Self>,
        provider: &str,
        back: Back,
        base: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Told, StoreError> {
        let (Some(provider), Some(base)) = (self.provider(provider), self.base(base)) else {
            return Ok(Told::Expired);
        };
        let Some((id, until, tag)) = back.state.as_deref().and_then(parts_of) else {
            return Ok(Told::OtherBrowser);
        };
        let name = cookie_name(id, base.starts_with("https://"));
        let (Some(browser), Some((hash, nonce))) = (cookie_in(headers, &name), halves_of(id))
        else {
            return Ok(Told::OtherBrowser);
        };
        let keys = self.keys(None).await?;
        let trip = Trip {
            challenge: id,
            provider: &provider.id,
            browser,
        };
        let now = self.host.now();
        let Some(verifier) = Journey::verifier_of(&keys, &trip, until, tag, now) else {
            return Ok(Told::OtherBrowser);
        };
        let redemption = Redemption {
            desk: Arc::clone(self),
            keys,
            provider: Arc::clone(provider),
            redirect: provider.redirect_uri(&base),
            verifier,
            place: format!("challenge#{hash}"),
            nonce: nonce.to_owned(),
        };
        // A task of its own: a code works once, and the browser may leave.
        let done = tokio::spawn(redemption.run(back)).await;
        done.unwrap_or(Ok(Told::Unavailable))
    }
}
