//! In place of the lists for the APIs of chat models, without the Cargo feature `models`.

use std::sync::Arc;

use crate::{
    Toolkit,
    protocol::{encoded_list::EncodedList, listed_tools::ListedTools},
};

/// Uninhabited: there is no list for an API.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::protocol::oxp) enum ModelApi {}

pub(in crate::protocol::oxp) fn api_for(
    name: Option<&str>,
    _: Option<&str>,
) -> Result<Option<ModelApi>, &'static str> {
    match name {
        None => Ok(None),
        Some(_) => Err(
            "This server was built without the Cargo feature 'models', which adds lists for the \
             APIs of models.",
        ),
    }
}

pub(crate) fn list_for(api: &str, _: &Toolkit) -> Result<String, &'static str> {
    api_for(Some(api), None).map(|_| String::new())
}

pub(in crate::protocol::oxp) fn encode(api: ModelApi, _: &ListedTools<'_>) -> Arc<EncodedList> {
    match api {}
}
