//! The format of a response, as its request determines it.

use super::dialect::Dialect;

/// The format of a response, as its request determines it.
#[derive(Clone, Default)]
pub(crate) struct OxpFormat {
    pub(super) dialect: Dialect,
    pub(super) list: ListFormat,
    /// A sentence about a field that has the input in place of `input`. The specification tolerates
    /// such a field, but it explains why the call was rejected.
    pub(super) misplaced_input: Option<String>,
}

impl From<Dialect> for OxpFormat {
    fn from(dialect: Dialect) -> Self {
        Self {
            dialect,
            ..Self::default()
        }
    }
}

impl From<ListFormat> for OxpFormat {
    fn from(list: ListFormat) -> Self {
        Self {
            dialect: list.dialect(),
            list,
            ..Self::default()
        }
    }
}

/// The format of a list or a document.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum ListFormat {
    /// OXP 1.0, header dialect: `items` with bare schemas.
    #[default]
    Header,
    /// OTC 1.0: `tools` with input schemas wrapped in `parameters`.
    Otc,
    /// OXP 1.0, `$schema` dialect, with both `items` and `tools`, because clients do not say which
    /// they read: the SDKs read `items`, the documentation's text says `tools`.
    Universal,
    /// The `OpenAPI` document.
    OpenApi,
}

impl ListFormat {
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Otc => Dialect::Otc,
            Self::Universal => Dialect::Schema,
            _ => Dialect::Header,
        }
    }
}
