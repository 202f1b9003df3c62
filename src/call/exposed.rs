//! Secrets in a text that is encrypted before it is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Secret;

pub(super) fn serialize<S: Serializer>(
    secrets: &BTreeMap<String, Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let texts = secrets.iter().map(|(id, it)| (id, it.expose()));
    texts.collect::<BTreeMap<_, _>>().serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Secret>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    let secrets = texts.into_iter().map(|(id, it)| (id, Secret::from(it)));
    Ok(secrets.collect())
}
