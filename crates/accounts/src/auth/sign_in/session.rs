//! The session of a user with one client: one record from the code to the last refresh token, so
//! that each step is one conditional write.
//!
//! Codes and refresh tokens are the session's id with a signature: nothing about them is stored but
//! the number of the current refresh token. One that is older than its predecessor shows that
//! somebody else has a copy, and ends the session (RFC 9700, 4.14.2).

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{identity::Identity, request::AuthorizationRequest};
use crate::{
    StoreError,
    clock::since_epoch,
    oauth::{EncryptionKeys, Records, Versioned},
    store::{Change, Over},
};

// The purposes of the signatures.
const CODE: &str = "code";
const REFRESH_TOKEN: &str = "refresh token";

/// The time for which a code can be used.
const CODE_LIFE: Duration = Duration::from_mins(1);
/// The time for which a session lasts at most, however often its tokens are refreshed.
pub(super) const SESSION_LIFE: Duration = Duration::from_hours(30 * 24);
/// The time during which a refresh token can be used again, because the response may have been lost.
const GRACE: Duration = Duration::from_mins(1);

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Session {
    /// The request that the user has agreed to, without its state.
    pub(super) request: AuthorizationRequest,
    /// The time of the sign-in, in seconds since 1970.
    pub(super) begun_at: u64,
    pub(super) person: Identity,
    /// False if the provider cannot confirm the person later: there are no refresh tokens then.
    pub(super) is_refreshable: bool,
    pub(super) stage: Stage,
}

/// Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) enum Stage {
    /// The code has not been used. Its record lasts as long as it.
    Code,
    /// The refresh token with this number is the current one.
    Tokens { number: u64, issued_at: u64 },
    /// Nothing can be used any more.
    Ended,
}

/// A code or a refresh token that a client presents.
pub(super) struct Presented<'a> {
    pub(super) session: &'a str,
    /// The number of the refresh token; `None` for a code.
    number: Option<u64>,
}

/// The consequence of presenting a code or a refresh token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the current one: the next one is issued once the provider has confirmed the user.
    Next,
    /// It is the one before, and the response may have been lost: the current one is sent again.
    Again,
    /// It can be used no more; the session has ended.
    Reused,
}

/// Returns the id of a session's record.
fn record_id(session: &str) -> String {
    format!("session#{session}")
}

/// Returns the code of a session.
pub(super) fn code(keys: &EncryptionKeys, session: &str) -> String {
    format!("{session}.{}", keys.sign(CODE, &[session]))
}

/// Returns the refresh token of a session with this number.
pub(super) fn refresh_token(keys: &EncryptionKeys, session: &str, number: u64) -> String {
    let number = number.to_string();
    let signature = keys.sign(REFRESH_TOKEN, &[session, &number]);
    format!("{session}.{number}.{signature}")
}

impl<'a> Presented<'a> {
    /// Parses a code. `None` if this server has not issued it.
    pub(super) fn code(text: &'a str, keys: &EncryptionKeys) -> Option<Self> {
        let (session, signature) = text.split_once('.')?;
        keys.signer(CODE, &[session], signature)?;
        Some(Self {
            session,
            number: None,
        })
    }

    /// Parses a refresh token. `None` if this server has not issued it.
    pub(super) fn refresh_token(text: &'a str, keys: &EncryptionKeys) -> Option<Self> {
        let (session, rest) = text.split_once('.')?;
        let (number, signature) = rest.split_once('.')?;
        keys.signer(REFRESH_TOKEN, &[session, number], signature)?;
        Some(Self {
            session,
            number: Some(number.parse().ok()?),
        })
    }

    /// Returns the consequence of presenting this in a session at this stage.
    pub(super) fn turn(&self, stage: Stage, now: SystemTime) -> Turn {
        let now = since_epoch(now).as_secs();
        match (stage, self.number) {
            (Stage::Code, None) => Turn::Next,
            (Stage::Tokens { number, .. }, Some(presented)) if presented == number => Turn::Next,
            (Stage::Tokens { number, issued_at }, Some(presented))
                if presented + 1 == number && now < issued_at + GRACE.as_secs() =>
            {
                Turn::Again
            }
            _ => Turn::Reused,
        }
    }
}

impl Stage {
    /// Returns the stage after the use of a code or a refresh token.
    pub(super) fn next(self, now: SystemTime) -> Self {
        let number = match self {
            Self::Tokens { number, .. } => number + 1,
            Self::Code | Self::Ended => 1,
        };
        Self::Tokens {
            number,
            issued_at: since_epoch(now).as_secs(),
        }
    }
}

impl Session {
    pub(super) async fn load(records: &Records, id: &str) -> Result<Option<Self>, StoreError> {
        Ok(records.load(&record_id(id)).await?.value)
    }

    /// Saves a new session.
    pub(super) async fn begin(&self, records: &Records, id: &str) -> Result<(), StoreError> {
        let id = record_id(id);
        records.save(&id, self, CODE_LIFE, Over::Nothing).await?;
        Ok(())
    }

    /// Ends a session, whatever its stage.
    pub(super) async fn end(records: &Records, id: &str) -> Result<(), StoreError> {
        let end = |versioned: Versioned<Self>| match versioned.value {
            Some(session) if session.stage != Stage::Ended => {
                let stage = Stage::Ended;
                Change::Write(Self { stage, ..session }, ())
            }
            _ => Change::Leave(()),
        };
        records.update(&record_id(id), SESSION_LIFE, end).await
    }

    /// Moves a session to its next stage, unless the token may no longer be used.
    pub(super) async fn advance(
        records: &Records,
        presented: &Presented<'_>,
        person: &Identity,
    ) -> Result<Option<Self>, StoreError> {
        let advance = |versioned: Versioned<Self>| {
            let now = records.clock.now();
            let Some(session) = versioned.value else {
                return Change::Leave(None);
            };
            match presented.turn(session.stage, now) {
                Turn::Next => {
                    let session = Self {
                        stage: session.stage.next(now),
                        person: person.clone(),
                        ..session
                    };
                    Change::Write(session.clone(), Some(session))
                }
                // Another instance was faster with the same token.
                Turn::Again => Change::Leave(Some(session)),
                Turn::Reused => Change::Leave(None),
            }
        };
        let id = record_id(presented.session);
        records.update(&id, SESSION_LIFE, advance).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn the_token_before_the_current_one_can_be_used_for_a_minute() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let stage = Stage::Tokens {
            number: 5,
            issued_at: 100,
        };
        let token = |number| Presented {
            session: "s",
            number: Some(number),
        };
        assert_eq!(token(5).turn(stage, at(10_000)), Turn::Next);
        assert_eq!(token(4).turn(stage, at(159)), Turn::Again);
        assert_eq!(token(4).turn(stage, at(160)), Turn::Reused);
        for number in [0, 1, 3, 6] {
            assert_eq!(token(number).turn(stage, at(101)), Turn::Reused, "{number}");
        }
        let code = Presented {
            session: "s",
            number: None,
        };
        assert_eq!(code.turn(Stage::Code, at(1)), Turn::Next);
        assert_eq!(code.turn(stage, at(101)), Turn::Reused);
        assert_eq!(token(1).turn(Stage::Code, at(1)), Turn::Reused);
        assert_eq!(token(5).turn(Stage::Ended, at(1)), Turn::Reused);
    }
}
