//! The revisions of the specification that the client speaks.

/// A revision of the Model Context Protocol.
///
/// Revisions before 2026-07-28 begin with `initialize`; the requests of later ones are
/// self-contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum McpRevision {
    /// 2024-11-05, over streamable HTTP.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last revision with `initialize`.
    V2025_11_25,
    /// 2026-07-28.
    V2026_07_28,
}

impl McpRevision {
    const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    pub(super) const NEWEST: Self = Self::V2026_07_28;
    pub(super) const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision as the protocol writes it: a date.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// True for revisions without `initialize`.
    pub(super) fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }
}
