//! What browsers get, and the way back from the provider.

use std::sync::Arc;

use http::HeaderMap;

use super::{
    desk::{Desk, Kept},
    pending::{Pending, Status, halves_of},
    redemption::Redemption,
    start::Question,
    state::{Journey, Trip, cookie_in, cookie_name, parts_of},
};
use crate::StoreError;

/// What a browser gets.
pub(crate) enum Answer {
    /// Whether they want it, with a cookie.
    Question {
        question: Box<Question>,
        cookie: String,
    },
    /// On to the provider, with a cookie.
    Redirect {
        url: String,
        cookie: String,
    },
    Page(Told),
}

/// What a page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Completed,
    NotAllowed,
    TooLittle,
    Expired,
    OtherBrowser,
    InUse,
    Failed,
    Unavailable,
}

/// What the provider sends back, read from a query.
#[derive(Default)]
pub(crate) struct Back {
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) issuer: Option<String>,
}

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
        let place = format!("challenge#{hash}");
        let kept: Kept<Pending> = self.kept(&keys, &place).await?;
        let pending = kept.value.filter(|it| it.is_named_by(nonce));
        let (Some(pending), Some(version)) = (pending, kept.version) else {
            tracing::warn!(
                provider = provider.id,
                "a redirect came back after its challenge"
            );
            return Ok(Told::Expired);
        };
        let told = match pending.status {
            Status::Pending => None,
            Status::Exchanging => Some(Told::InUse),
            Status::Completed => Some(Told::Completed),
            Status::Failed => Some(Told::Failed),
        };
        if let Some(told) = told {
            tracing::warn!(
                provider = provider.id,
                "a redirect came back again; it works once"
            );
            return Ok(told);
        }
        let redemption = Redemption {
            desk: Arc::clone(self),
            keys,
            provider: Arc::clone(provider),
            redirect: redirect_uri(&base, &provider.id),
            verifier,
            place,
            pending,
        };
        // A task of its own: a code works once, and the browser may leave.
        let done = tokio::spawn(redemption.run(version, back)).await;
        done.unwrap_or(Ok(Told::Unavailable))
    }
}

pub(super) fn redirect_uri(base: &str, provider: &str) -> String {
    format!("{base}/authorization/{provider}/callback")
}
