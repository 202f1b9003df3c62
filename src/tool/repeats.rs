//! What a repeated call may do.

/// What a tool says of running it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RepeatPolicy {
    /// Running it again changes nothing: no record is needed.
    Idempotent,
    /// A repeated call gets the first one's outcome; what came to nothing runs again.
    #[default]
    Recorded,
    /// Rather not at all than twice.
    AtMostOnce,
}
