//! Direct calls: events that have the format of a body of `POST /tools/call`, in any dialect.

use std::sync::Arc;

use bytes::Bytes;

use super::{CALL_SPAN, OxpCodec, format::OxpFormat};
use crate::{
    ServerInfo,
    protocol::{
        admission::AppState,
        direct::{self, EventCall},
    },
};

/// Returns true for the `$schema` of a call in an envelope: `urn:oxp:1.0`, `otc://1.0`, or OXP's
/// URL.
pub(crate) fn has_schema(schema: &str) -> bool {
    schema.starts_with("urn:oxp:") || schema.starts_with("otc://") || schema.contains("oxp")
}

/// Answers a direct call.
pub(crate) async fn answer(app: &Arc<AppState>, call: EventCall) -> Bytes {
    let codec = OxpCodec::new(&ServerInfo::default());
    direct::answer(app, codec, CALL_SPAN, call, &OxpFormat::default()).await
}
