//! Tools for Figma's API, all of them made from its OpenAPI document.

use std::env;

use lambda_tools::{Server, ServerInfo, Toolkit, from_openapi::ApiTools, run};

fn main() -> Result<(), lambda_tools::Error> {
    let mut api = ApiTools::from_json(include_str!("../tools.json"))?;
    // For tests: another server of the same API, which may be on this machine.
    if let Ok(url) = env::var("API_URL") {
        api = api.base_url(url).allow_private();
    }
    let info = ServerInfo::from(&api);
    run(Server::new(Toolkit::new(api.tools()?)?).info(info))
}
