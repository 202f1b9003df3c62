//! The policy for repeated calls.

/// A tool's policy for repeated calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatPolicy {
    /// Running the tool again changes nothing: no record is needed.
    Idempotent,
    /// A repeated call gets the first one's outcome; a call without a final outcome runs again.
    #[default]
    Recorded,
    /// Not running the tool is better than running it twice.
    AtMostOnce,
}
