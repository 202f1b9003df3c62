//! The description of a server.

use serde::Serialize;

/// The description of a server: its title, its version and a sentence about it.
///
/// ```
/// use lambda_tools::{Server, ServerInfo, Toolkit};
///
/// let info = ServerInfo::new("Weather", "1.2.0").description("Forecasts for any place.");
/// let server = Server::new(Toolkit::new([])?).info(info);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct ServerInfo {
    title: String,
    description: String,
    version: String,
}

impl ServerInfo {
    /// Sets the title and the version, `x.y.z`; the description is `Tools for AI agents.`
    ///
    /// An invalid version is an error at start-up.
    #[must_use]
    pub fn new(title: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            description: "Tools for AI agents.".into(),
            version: version.into(),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn about(&self) -> &str {
        &self.description
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

impl Default for ServerInfo {
    fn default() -> Self {
        Self::new("Tools", "1.0.0")
    }
}
