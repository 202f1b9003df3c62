//! `lambda-tools serve`: the tools of documents, on a local server; and the program of a function
//! that `lambda-tools zip` packs.

use std::{env, process::ExitCode};

use lambda_tools::{
    OAuth, Server, ServerInfo, Toolkit,
    from_openapi::{ApiTools, Reduction, UserProvider},
    oauth::Provider,
};
use tokio::runtime::Builder;

use crate::{
    Error,
    api::{Api, advised},
    args::{Conversion, Serve},
    output::say,
    parse, source, summary,
};

/// Advice for documents whose tools have the same names.
const RENAME: &str = "\nGive the toolkit of one document another name, and serve its file in the document's place:\n  \
    lambda-tools openapi DOCUMENT --all --toolkit NAME -o NAME.json";

/// Runs the command.
pub(crate) fn run(options: &Serve) -> Result<ExitCode, Error> {
    if options.documents.len() > 1 && options.conversion.access.base_url.is_some() {
        return Err("--base-url is for one document, or it gets the secrets of others".into());
    }
    let mut apis = Vec::new();
    for source in &options.documents {
        match tools(source, &options.conversion)? {
            Some(api) => apis.push(api),
            None => return Ok(ExitCode::SUCCESS),
        }
    }
    let server = server(apis).map_err(|error| advised(&*error, ""))?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    // Unlike `run`, it leaves the arguments to this program.
    let result = runtime.block_on(lambda_tools::serve(server));
    // Does not wait for functions that are not async.
    runtime.shutdown_background();
    ended(result)
}

/// Serves the `tools.json` in the folder of this program.
pub(crate) fn on_lambda() -> Result<ExitCode, Error> {
    let file = env::current_exe()?.with_file_name("tools.json");
    let tools = ApiTools::from_json(&source::read_file(&file)?)?;
    ended(lambda_tools::run(server(vec![tools])?))
}

fn ended(result: Result<(), lambda_tools::Error>) -> Result<ExitCode, Error> {
    result.map_err(|error| -> Error { error })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the tools of a document or of a file of tools. `None` if its operations have to be chosen
/// first, which this function then says.
fn tools(source: &str, options: &Conversion) -> Result<Option<ApiTools>, Error> {
    let access = &options.access;
    let document = parse::read(source)?;
    let is_saved = document.get("openapi").is_none() && document.get("tools").is_some();
    let tools = if is_saved {
        // Such a file decides where secrets are sent.
        if source::is_url(source) {
            let text = "this is a file of tools: download it, read it, and serve the file";
            return Err(text.into());
        }
        let api = ApiTools::from_json(&document.to_string())?;
        access.base_url.iter().fold(api, ApiTools::base_url)
    } else {
        let mut api = Api::new(source, document, options)?;
        if !api.openapi.has_choice() {
            let allows_many = options.choice.searchable || options.choice.list_all;
            if api.openapi.operations() > summary::MOST_WITHOUT_CHOICE && !allows_many {
                summary::groups(&api.openapi.tags(), "");
                return Ok(None);
            }
            api.openapi.options.include_paths.push("*".to_owned());
        }
        let Reduction { tools, report, .. } = api.reduce()?;
        summary::print(&tools, &report, false);
        tools
    };
    // A document from another machine does not choose what is called on this one.
    let is_own =
        access.base_url.is_some() || !source::is_url(source) || source::is_loopback(source);
    let allows_private = access.allow_private || is_own && source::is_loopback(tools.api_url());
    Ok(Some(if allows_private {
        tools.allow_private()
    } else {
        tools
    }))
}

/// Returns a server of these APIs' tools.
fn server(mut apis: Vec<ApiTools>) -> Result<Server, Error> {
    // Another server of the same API, such as that of a test environment.
    if let Ok(url) = env::var("API_URL") {
        let moved = apis.into_iter().map(|it| it.base_url(&url).allow_private());
        apis = moved.collect();
    }
    let providers: Vec<_> = apis.iter().flat_map(ApiTools::providers).collect();
    let (info, advice) = match &*apis {
        [api] => (ServerInfo::from(api), ""),
        several => {
            let titles: Vec<_> = several.iter().map(ApiTools::title).collect();
            (ServerInfo::new(titles.join(", "), "1.0.0"), RENAME)
        }
    };
    let mut tools = Vec::new();
    for api in apis {
        tools.extend(api.tools()?);
    }
    let toolkit = Toolkit::new(tools).map_err(|error| format!("{error}{advice}"))?;
    let server = Server::new(toolkit).info(info);
    Ok(oauth(providers).into_iter().fold(server, Server::oauth))
}

/// Returns the provider at which users grant their tokens, if this server is registered there.
fn oauth(providers: Vec<UserProvider>) -> Option<OAuth> {
    let it = providers.into_iter().next()?;
    let Ok(client_id) = env::var("OAUTH_CLIENT_ID") else {
        say(&format!(
            "warning: users cannot grant access yet: register this server at {}, and set OAUTH_CLIENT_ID, \
             OAUTH_CLIENT_SECRET and TOOLS_OAUTH_KEY",
            it.authorize_url
        ));
        return None;
    };
    let (id, secret) = (it.id, "OAUTH_CLIENT_SECRET");
    let provider = Provider::new(id, client_id, secret, it.authorize_url, it.token_url);
    let oauth = OAuth::with([provider]);
    let table = env::var("TOOLS_OAUTH_TABLE").into_iter();
    Some(table.fold(oauth, OAuth::in_dynamodb))
}
