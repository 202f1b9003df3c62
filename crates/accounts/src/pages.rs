//! Pages for browsers, whose policy names everything that the browser may run and apply.

mod challenge;
#[cfg(feature = "sign-in")]
mod sign_in;
mod user_page;

pub use challenge::challenge_response;
#[cfg(feature = "sign-in")]
pub use sign_in::{UNREADABLE_FORM, sign_in_response};
pub use user_page::{FIELD, ShownServer};
