//! Icons, which clients of MCP show beside a tool or a server.
//!
//! Reference: MCP 2026-07-28 and 2025-11-25, Overview, Icons.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use super::content::is_uri;

/// The maximum size of an image in a `data:` URI, in bytes of the URI: every list of tools has it.
const LARGEST_DATA: usize = 16 * 1024;

const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/svg+xml", "image/webp"];

const SOURCE: &str = "an icon must be an https:// URL without credentials, or an image/png, \
    image/jpeg, image/svg+xml or image/webp in a data: URI of at most 16 KB (Icon::bytes)";
const MEDIA_TYPE: &str =
    "an icon's media type must be image/png, image/jpeg, image/svg+xml or image/webp";
const SIZE: &str = "an icon's size must be any, or a width and a height such as 48x48";

/// An icon of a [tool](crate::Tool::icon) or a server, which MCP clients may show.
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use lambda_tools::Icon;
///
/// let icon = Icon::new("https://weather.example/rain-48.png").size("48x48").for_dark_background();
/// let svg = r#"<svg xmlns="http://www.w3.org/2000/svg"><circle r="4"/></svg>"#;
/// let embedded = Icon::bytes("image/svg+xml", svg).size("any");
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    src: String,
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    theme: Option<&'static str>,
}

impl Icon {
    /// Creates an icon that clients fetch from an `https://` URL. Clients may require that the URL is
    /// in the server's own domain.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            src: url.into(),
            media_type: None,
            sizes: Vec::new(),
            theme: None,
        }
    }

    /// Creates an icon that lists contain, as a `data:` URI of at most 16 KB. The media type is
    /// `image/png`, `image/jpeg`, `image/svg+xml` or `image/webp`; some clients show no SVG.
    pub fn bytes(media_type: &str, bytes: impl AsRef<[u8]>) -> Self {
        Self::new(format!(
            "data:{media_type};base64,{}",
            STANDARD.encode(bytes)
        ))
    }

    /// Sets the media type, if the web server does not send the right one.
    #[must_use]
    pub fn media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// Adds a size that the icon is made for, such as `48x48`, or `any` for an SVG.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// Declares that the icon is made for a light background.
    #[must_use]
    pub fn for_light_background(mut self) -> Self {
        self.theme = Some("light");
        self
    }

    /// Declares that the icon is made for a dark background.
    #[must_use]
    pub fn for_dark_background(mut self) -> Self {
        self.theme = Some("dark");
        self
    }

    /// Returns the URI of the image.
    #[doc(hidden)]
    pub fn src(&self) -> &str {
        &self.src
    }

    /// Returns the mistakes in the icon.
    #[doc(hidden)]
    pub fn mistakes(&self) -> impl Iterator<Item = &'static str> {
        let media_type = self.media_type.as_deref();
        let is_type = media_type.is_none_or(|it| MEDIA_TYPES.contains(&it));
        let has_source = is_web_page(&self.src) || is_image(&self.src);
        let mistakes = [
            (!has_source).then_some(SOURCE),
            (!is_type).then_some(MEDIA_TYPE),
            (!self.sizes.iter().all(|it| is_size(it))).then_some(SIZE),
        ];
        mistakes.into_iter().flatten()
    }
}

impl From<&str> for Icon {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

/// Returns true for an `https://` URL with a host and without credentials.
pub fn is_web_page(url: &str) -> bool {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    is_uri(url) && !authority.is_empty() && !authority.starts_with(':') && !authority.contains('@')
}

/// Returns true for a `data:` URI with an image, in base64, as the specification requires.
fn is_image(src: &str) -> bool {
    let data = src.strip_prefix("data:");
    let data = data.and_then(|it| it.split_once(";base64,"));
    data.is_some_and(|(media_type, data)| {
        src.len() <= LARGEST_DATA
            && MEDIA_TYPES.contains(&media_type)
            && STANDARD.decode(data).is_ok_and(|it| !it.is_empty())
    })
}

fn is_size(size: &str) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let sides = size.split_once('x');
    size == "any" || sides.is_some_and(|(width, height)| is_number(width) && is_number(height))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Icon, LARGEST_DATA};

    fn is_valid(icon: &Icon) -> bool {
        icon.mistakes().next().is_none()
    }

    #[test]
    fn the_json_has_what_is_set() {
        let icon = Icon::new("https://a.example/i");
        assert_eq!(json!(icon), json!({"src": "https://a.example/i"}));
        let icon = icon
            .media_type("image/webp")
            .size("48x48")
            .size("96x96")
            .for_light_background();
        let expected = json!({
            "src": "https://a.example/i",
            "mimeType": "image/webp",
            "sizes": ["48x48", "96x96"],
            "theme": "light",
        });
        assert_eq!(json!(icon), expected);
        assert_eq!(json!(icon.for_dark_background())["theme"], "dark");
        let embedded = json!({"src": "data:image/png;base64,iVBORw=="});
        assert_eq!(json!(Icon::bytes("image/png", b"\x89PNG")), embedded);
    }

    #[test]
    fn the_source_is_an_https_url_or_an_image() {
        for src in [
            "https://a.example",
            "https://a.example:8443/icon.png?v=2#dark",
            "https://[2001:db8::1]/icon.png",
            "data:image/svg+xml;base64,PHN2Zy8+",
            "data:image/jpeg;base64,/9j/",
        ] {
            assert!(is_valid(&Icon::new(src)), "{src}");
        }
        for src in [
            "",
            "icon.png",
            "http://a.example/icon.png",
            "HTTPS://a.example/icon.png",
            "https://",
            "https:///icon.png",
            "https://:443/icon.png",
            "https://user:password@a.example/icon.png",
            "https://a.example/an icon.png",
            "https://a.example/icon.png\r\n",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:image/png,iVBORw==",
            "data:image/png;base64,",
            "data:image/png;base64,iVBORw",
            "data:image/png;base64,iVBO Rw==",
            "data:text/html;base64,PHN2Zy8+",
            "data:image/gif;base64,R0lG",
            "data:image/svg+xml;charset=utf-8;base64,PHN2Zy8+",
        ] {
            assert!(!is_valid(&Icon::new(src)), "{src:?}");
        }
    }

    #[test]
    fn an_embedded_image_has_a_limit() {
        let prefix = "data:image/png;base64,".len();
        let longest = (LARGEST_DATA - prefix) / 4 * 3;
        assert!(is_valid(&Icon::bytes("image/png", vec![1; longest])));
        assert!(!is_valid(&Icon::bytes("image/png", vec![1; longest + 1])));
    }

    #[test]
    fn sizes_and_media_types_are_checked() {
        let icon = || Icon::new("https://a.example/icon");
        for size in ["any", "1x1", "512x512"] {
            assert!(is_valid(&icon().size(size)), "{size}");
        }
        for size in [
            "", "x", "48", "48x", "x48", "48X48", "48x48x48", "+4x4", "4.5x4",
        ] {
            assert!(!is_valid(&icon().size("any").size(size)), "{size}");
        }
        for media_type in ["", "png", "image/*", "image/PNG", "text/html"] {
            assert!(!is_valid(&icon().media_type(media_type)), "{media_type}");
        }
        let worst = Icon::new("").media_type("").size("");
        assert_eq!(worst.mistakes().count(), 3);
    }
}
