//! In place of the explorer, without the Cargo feature `explorer`.

use std::sync::Arc;

use axum::Router;

use crate::{
    ServerInfo,
    protocol::{Protocol, admission::AppState},
};

/// Uninhabited: no response is the explorer's.
#[derive(Clone, Copy)]
pub(crate) enum FromExplorer {}

/// Returns no routes. Never called: the settings reject the explorer.
pub(in crate::protocol) fn routes(_: Arc<AppState>, _: &[Protocol], _: &ServerInfo) -> Router {
    Router::new()
}
