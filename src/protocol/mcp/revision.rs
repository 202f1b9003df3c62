//! The revisions of the specification.

/// A revision. The variants are in chronological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    pub(super) const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision with `initialize`.
    pub(super) const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision of a request that names none (2025-11-25, Transports, Protocol Version Header).
    pub(super) const UNNAMED: Self = Self::V2025_03_26;

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    pub(super) fn as_str(self) -> &'static str {
        // Without the prefix of the log's dialect.
        &self.dialect()[4..]
    }

    /// Returns the name in the log.
    pub(super) fn dialect(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "mcp-2024-11-05",
            Self::V2025_03_26 => "mcp-2025-03-26",
            Self::V2025_06_18 => "mcp-2025-06-18",
            Self::V2025_11_25 => "mcp-2025-11-25",
            Self::V2026_07_28 => "mcp-2026-07-28",
        }
    }

    /// Returns true for revisions without a handshake: each request carries its revision and its
    /// client's capabilities.
    pub(super) fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}
