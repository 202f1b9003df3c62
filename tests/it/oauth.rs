//! Users' grants, with a provider in this process, and with a certified `OpenID` provider.

mod attacks;
mod grants;
#[cfg(feature = "dynamodb")]
mod instances;
mod openid;

use test_support::issuer::Issuer;

use crate::consent_page::local::{Local, Page, oauth_at};

/// Starts a server, and the provider that issues its tokens.
async fn start() -> (Local, Issuer) {
    let issuer = Issuer::start().await;
    (Local::with_oauth(oauth_at(&issuer)), issuer)
}

/// Returns the query with which the provider sends a browser back.
fn query_for(redirect: &Page) -> String {
    format!("code=c&state={}", redirect.state())
}

#[track_caller]
fn assert_done(page: &Page) {
    assert!(page.body.contains("<title>Done</title>"), "{}", page.body);
}
