//! The room for large bodies, which are decoded a few at a time.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::call::rejection::Rejection;

/// A body is large if it has more bytes than this. Others need no room.
const LARGE: u32 = 32 * 1024;

/// The room for large bodies: for one of the maximum size, or for several that are smaller.
///
/// A value of JSON takes many times its size in memory while it is decoded and checked. So the
/// bodies of which that is true at once have a limit in bytes, and the others wait.
pub(crate) struct LargeBodies(Arc<Semaphore>);

impl LargeBodies {
    pub(crate) fn new(bytes: usize) -> Self {
        // More bytes than a semaphore can count are no limit.
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Waits for room for a body of this size, no longer than `limit`.
    pub(super) async fn room_for(
        &self,
        size: usize,
        limit: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, Rejection> {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        if size <= LARGE {
            return Ok(None);
        }
        let room = Arc::clone(&self.0).acquire_many_owned(size);
        let room = timeout(limit, room).await.ok().and_then(Result::ok);
        room.map(Some).ok_or(Rejection::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_bodies_wait_for_room_and_small_ones_need_none() {
        // Any size may be the limit.
        LargeBodies::new(usize::MAX);
        let bodies = LargeBodies::new(100_000);
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(5));
        let first = bodies.room_for(60_000, short).await.ok().flatten();
        let busy = bodies.room_for(60_000, short).await.err();
        let busy = busy.expect("there is no room for both");
        assert!(matches!(busy, Rejection::Busy) && busy.is_temporary());
        assert!(matches!(bodies.room_for(40_000, short).await, Ok(Some(_))));
        assert!(matches!(bodies.room_for(32 * 1024, short).await, Ok(None)));
        let release = async {
            tokio::time::sleep(short).await;
            drop(first);
        };
        let (next, ()) = tokio::join!(bodies.room_for(100_000, long), release);
        assert!(matches!(next, Ok(Some(_))));
        assert!(bodies.room_for(40_000, short).await.is_err());
    }
}
