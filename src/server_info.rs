//! The description of a server.

use serde::Serialize;

use crate::tool::content::is_uri;

/// The description of a server: its title, its version and a sentence about it.
///
/// Users see the title, and the support link, on the pages on which they let tools use their
/// accounts.
///
/// ```
/// use lambda_tools::{Server, ServerInfo, Toolkit};
///
/// let info = ServerInfo::new("Weather", "1.2.0").description("Forecasts for any place.");
/// let server = Server::new(Toolkit::new([])?).info(info);
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[must_use]
pub struct ServerInfo {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) version: String,
    /// The URL for users' questions; not a part of OpenTool's `info`, which is this type's JSON.
    #[serde(skip)]
    pub(crate) support_url: Option<String>,
}

impl ServerInfo {
    /// Sets the title and the version, `x.y.z`; the description is `Tools for AI agents.`
    ///
    /// An invalid version is an error at start-up.
    pub fn new(title: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            description: "Tools for AI agents.".into(),
            version: version.into(),
            support_url: None,
        }
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets where users can ask questions: an `https://` URL, or an address such as
    /// `mailto:help@example.com`. Every page on which users let tools use their accounts links to
    /// it. An invalid URL is an error at start-up.
    pub fn support_url(mut self, url: impl Into<String>) -> Self {
        self.support_url = Some(url.into());
        self
    }

    /// Returns what pages show of the server.
    #[cfg(feature = "oauth")]
    pub(crate) fn shown(&self) -> lambda_tools_accounts::pages::ShownServer<'_> {
        lambda_tools_accounts::pages::ShownServer {
            title: &self.title,
            support_url: self.support_url.as_deref(),
        }
    }

    /// Returns true if there is no support URL, or a valid one.
    pub(crate) fn is_support_url_valid(&self) -> bool {
        self.support_url.as_deref().is_none_or(is_support_url)
    }
}

fn is_support_url(url: &str) -> bool {
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return false;
    }
    if let Some(address) = url.strip_prefix("mailto:") {
        let address = address.split('?').next().unwrap_or_default();
        let parts: Vec<_> = address.split('@').collect();
        return parts.len() == 2 && parts.iter().all(|part| !part.is_empty());
    }
    is_web_page(url)
}

/// Returns true for an `https://` URL with a host and without credentials.
fn is_web_page(url: &str) -> bool {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    is_uri(url) && !authority.is_empty() && !authority.starts_with(':') && !authority.contains('@')
}

impl Default for ServerInfo {
    fn default() -> Self {
        Self::new("Tools", "1.0.0")
    }
}

/// The title, the version and the description of an API as those of its server.
#[cfg(feature = "from-openapi")]
impl From<&lambda_tools_openapi::ApiTools> for ServerInfo {
    fn from(api: &lambda_tools_openapi::ApiTools) -> Self {
        let title = Some(api.title()).filter(|it| !it.is_empty());
        let info = Self::new(title.unwrap_or("Tools"), api.version());
        match api.description() {
            "" => info,
            text => info.description(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_is_the_info_of_opentool_and_nothing_else() {
        let info = ServerInfo::new("Weather", "1.2.0").support_url("https://weather.example/help");
        let json = serde_json::to_string(&info).unwrap();
        let expected =
            r#"{"title":"Weather","description":"Tools for AI agents.","version":"1.2.0"}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn a_support_url_is_a_web_page_or_an_address() {
        let urls = "https://weather.example https://weather.example:8443/help?topic=tools#access \
            https://[2001:db8::1]/help mailto:help@weather.example \
            mailto:help@weather.example?subject=Tools";
        for url in urls.split(' ') {
            let info = ServerInfo::default().support_url(url);
            assert!(info.is_support_url_valid(), "{url}");
        }
        assert!(ServerInfo::default().is_support_url_valid());
        let urls = "weather.example/help http://weather.example/help \
            HTTPS://weather.example/help javascript:alert(1) data:text/html,help \
            //weather.example/help https:///help https:// https://:443/help \
            https://user:password@weather.example/help mailto: mailto:help \
            mailto:@weather.example mailto:help@ mailto:a@b@c \
            mailto:?to=help@weather.example";
        for url in urls.split(' ').chain([
            "",
            "https://weather.example/a b",
            "https://weather.example/\n",
            " https://weather.example",
            "mailto:help@weather.example\r\nBcc: all",
        ]) {
            let info = ServerInfo::default().support_url(url);
            assert!(!info.is_support_url_valid(), "{url:?}");
        }
    }

    /// The infos of documents, each with the title, the version and the description of the server.
    #[cfg(feature = "from-openapi")]
    const INFOS: &str = r#"[
        [{"title": "Pets API", "version": "2.3.4-beta", "description": "All\nabout [pets](https://x.example)."},
         ["Pets API", "2.3.4", "All about pets."]],
        [{"title": "A", "version": "v2"}, ["A", "2.0.0", "Tools for AI agents."]],
        [{"title": "A", "version": "2020-09-14_1.6"}, ["A", "2020.0.0", "Tools for AI agents."]],
        [{"version": "beta"}, ["Tools", "1.0.0", "Tools for AI agents."]]
    ]"#;

    #[cfg(feature = "from-openapi")]
    #[test]
    fn a_server_has_the_name_of_its_api() {
        use lambda_tools_openapi::{OpenApi, OpenApiOptions};
        use serde_json::{Value, json};

        let rows: Vec<(Value, Value)> = serde_json::from_str(INFOS).unwrap();
        for (info, expected) in rows {
            let document = json!({"openapi": "3.1.0", "info": info, "servers": [{"url": "https://pets.example"}],
                "paths": {"/pets": {"get": {"operationId": "list", "responses": {}}}}});
            let api = OpenApi::new(document, OpenApiOptions::all()).unwrap();
            let info = ServerInfo::from(&api.reduce().unwrap().tools);
            let named = json!([info.title, info.version, info.description]);
            assert_eq!(named, expected);
        }
    }
}
