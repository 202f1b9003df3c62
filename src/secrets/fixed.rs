//! Secrets that the program itself holds, for tests.

use std::collections::BTreeMap;

use super::{ReadFuture, SecretStore};
use crate::Secret;

pub(super) struct Fixed(pub(super) BTreeMap<String, Secret>);

impl SecretStore for Fixed {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let one = |id: &String| Ok(self.0.get(id).cloned());
        Box::pin(std::future::ready(ids.iter().map(one).collect()))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn location(&self, _: &str) -> String {
        "the server's own list".to_owned()
    }
}
