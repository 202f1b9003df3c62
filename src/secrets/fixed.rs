//! Secrets in the program itself, for tests.

use std::collections::BTreeMap;

use super::{ReadFuture, SecretStore};
use crate::Secret;

pub(super) struct Fixed(pub(super) BTreeMap<String, Secret>);

impl SecretStore for Fixed {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let read_one = |id: &String| Ok(self.0.get(id).cloned());
        Box::pin(std::future::ready(ids.iter().map(read_one).collect()))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn location(&self, _: &str) -> String {
        "the server's fixed secrets".to_owned()
    }
}
