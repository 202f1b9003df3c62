//! The server's own URL.

/// The server's URL: the configured one, or the one that the platform provides.
#[derive(Clone, Debug, Default)]
pub struct PublicUrl {
    /// The URL that the owner has set, without a trailing slash.
    pub configured: Option<String>,
    /// The prefix of the server's paths, without leading or trailing slashes; appended to a base
    /// URL from the event.
    pub base_path: String,
}

impl PublicUrl {
    /// Creates the URL from the settings `public_url` and `base_path`.
    pub fn new(configured: Option<&str>, base_path: Option<&str>) -> Self {
        let base_path = base_path.unwrap_or_default().trim_matches('/');
        Self {
            configured: configured.map(|url| url.trim_end_matches('/').to_owned()),
            base_path: base_path.to_owned(),
        }
    }

    /// Returns the configured URL, or else the event's base URL with the base path. Without a
    /// trailing slash.
    pub fn resolve(&self, event_base: Option<&str>) -> Option<String> {
        if let Some(url) = &self.configured {
            return Some(url.clone());
        }
        let event_base = event_base?.trim_end_matches('/');
        Some(match self.base_path.as_str() {
            "" => event_base.to_owned(),
            path => format!("{event_base}/{path}"),
        })
    }
}
