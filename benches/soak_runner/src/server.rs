//! The two forms in which the program runs.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    answer::Answer,
    event::Event,
    local::{Connection, LocalServer},
    runtime_api::RuntimeApi,
};

/// A program under load.
pub(crate) enum Server {
    Function(RuntimeApi),
    Local(LocalServer),
}

impl Server {
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Sends a request, and returns the answer and its time; `None` if there is none within `limit`.
    pub(crate) async fn respond(
        &self,
        event: Event,
        connection: &mut Option<Connection>,
        limit: Duration,
    ) -> Option<(Result<Answer, String>, Duration)> {
        match self {
            Self::Function(api) => {
                let is_direct = event.is_direct;
                let reply = api.invoke(event.into_bytes(), limit).await?;
                Some((Answer::of(&reply, is_direct), reply.latency))
            }
            Self::Local(server) => timeout(limit, server.respond(&event, connection))
                .await
                .ok(),
        }
    }

    /// Measures the program: a function between two events when it `sleeps`, a local server at any
    /// time.
    pub(crate) async fn measure<T>(
        &self,
        sleeps: impl Fn() -> bool,
        measure: impl FnOnce() -> T,
    ) -> Option<T> {
        match self {
            Self::Function(api) => api.while_idle(sleeps, measure).await,
            Self::Local(_) => Some(measure()),
        }
    }

    /// The number of responses to no event.
    pub(crate) fn misplaced(&self) -> u64 {
        match self {
            Self::Function(api) => api.misplaced(),
            Self::Local(_) => 0,
        }
    }
}
