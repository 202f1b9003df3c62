//! Tools for agents, made from an API's OpenAPI document.
//!
//! An HTTP API that has such a document becomes tools without any code.
//!
#![doc = include_str!("pages.md")]
#![doc = include_str!("../docs/from-openapi.md")]

#[doc(inline)]
pub use lambda_tools_openapi::{
    ApiTools, Note, OpenApi, OpenApiError, Reduction, Report, UserProvider,
};

use crate::ServerInfo;

/// The title, the version and the description of an API as those of its server.
impl From<&ApiTools> for ServerInfo {
    fn from(api: &ApiTools) -> Self {
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
    use serde_json::{Value, json};

    use super::*;

    const INFOS: &str = r#"
{"title": "Pets API", "version": "2.3.4-beta", "description": "All\nabout [pets](https://x.example)."} => ["Pets API", "2.3.4", "All about pets."]
{"title": "A", "version": "v2"} => ["A", "2.0.0", "Tools for AI agents."]
{"title": "A", "version": "2020-09-14_1.6"} => ["A", "2020.0.0", "Tools for AI agents."]
{"version": "beta"} => ["Tools", "1.0.0", "Tools for AI agents."]
"#;

    #[test]
    fn a_server_has_the_name_of_its_api() {
        let described = |info: Value| {
            let document = json!({"openapi": "3.1.0", "info": info, "servers": [{"url": "https://pets.example"}],
                "paths": {"/pets": {"get": {"operationId": "list", "responses": {}}}}});
            let api = OpenApi::new(document).unwrap().include_all();
            let info = ServerInfo::from(&api.reduce().unwrap().tools);
            json!([info.title(), info.version(), info.about()])
        };
        for row in INFOS.lines().filter(|row| !row.is_empty()) {
            let (info, expected) = row.split_once(" => ").unwrap();
            let [info, expected] =
                [info, expected].map(|it| serde_json::from_str::<Value>(it).unwrap());
            assert_eq!(described(info), expected);
        }
    }
}
