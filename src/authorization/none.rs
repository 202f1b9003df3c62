//! Without the cargo feature `oauth`: nobody can be asked to allow anything.

use std::{sync::Arc, time::Duration};

use crate::{AuthorizationRequirement, Secret, StoreError, tool::requirement::Challenge};

/// There is none.
pub(crate) enum Desk {}

#[derive(Clone, Copy)]
#[expect(dead_code, reason = "the same fields with and without the feature")]
pub(crate) struct Asking<'a> {
    pub(crate) caller: &'a str,
    pub(crate) user: &'a str,
    pub(crate) need: &'a AuthorizationRequirement,
    pub(crate) base: Option<&'a str>,
    pub(crate) left: Duration,
}

impl Desk {
    pub(crate) fn knows(&self, _: &str) -> bool {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "the same with and without the feature")]
    pub(crate) async fn token(
        self: &Arc<Self>,
        _: Asking<'_>,
    ) -> Result<Option<Secret>, StoreError> {
        match **self {}
    }

    #[expect(clippy::unused_async, reason = "the same with and without the feature")]
    pub(crate) async fn challenge(&self, _: Asking<'_>) -> Result<Challenge, StoreError> {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "the same with and without the feature")]
    pub(crate) async fn refused(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: &Secret,
    ) -> Result<bool, StoreError> {
        match *self {}
    }
}
