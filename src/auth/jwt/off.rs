//! JWTs, without the Cargo feature `jwt`: there are none.

use std::{sync::Arc, time::SystemTime};

use crate::{
    Caller,
    auth::{attempt::CredentialCheck, rotation::SecretRotation},
    secrets::ReadResult,
};

pub(super) const SHORTEST_SECRET: usize = 0;

#[derive(Clone, Debug)]
pub(crate) enum Jwt {}

impl Jwt {
    pub(super) fn signers(&self) -> &[SecretRotation] {
        match *self {}
    }

    pub(super) fn names_users(&self, _: &Arc<str>) -> bool {
        match *self {}
    }
}

pub(super) fn identify(
    all: &[Jwt],
    _: &[u8],
    _: impl Iterator<Item = ReadResult>,
    _: SystemTime,
    _: &mut CredentialCheck,
) -> Option<Caller> {
    all.first().map(|jwt| match *jwt {})
}
