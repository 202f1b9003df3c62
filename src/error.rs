//! What ends a server.

/// What ends [`serve`](crate::serve): a taken port, a definition that is wrong, a platform that does
/// not answer.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
