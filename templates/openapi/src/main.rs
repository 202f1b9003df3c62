//! Tools for AI agents, made from an OpenAPI document, as one AWS Lambda function.

#[cfg(test)]
mod tests;

{% if oauth_provider -%}
use lambda_tools::{
    Error, OAuth, Server, ServerInfo, Toolkit, from_openapi::ApiTools, oauth::Provider, run,
};
{%- else -%}
use lambda_tools::{Error, Server, ServerInfo, Toolkit, from_openapi::ApiTools, run};
{%- endif %}

fn main() -> Result<(), Error> {
    // Another server of the same API, such as that of a test environment.
    run(server(std::env::var("API_URL").ok())?)
}

fn server(api_url: Option<String>) -> Result<Server, Error> {
    let mut api = ApiTools::from_json(include_str!("../tools.json"))?;
    if let Some(url) = api_url {
        api = api.base_url(url).allow_private();
    }
    let info = ServerInfo::from(&api);
{%- if oauth_provider %}
    // Register this server there, with the redirect URI URL/authorization/PROVIDER/callback;
    // `tools.json` has the provider and its URLs.
    let client_id = std::env::var("OAUTH_CLIENT_ID").unwrap_or_default();
    let providers = api.providers().into_iter().take(1).map(|it| {
        Provider::new(
            it.id,
            client_id.clone(),
            "OAUTH_CLIENT_SECRET",
            it.authorize_url,
            it.token_url,
        )
    });
    let oauth = OAuth::with(providers);
    let oauth = match std::env::var("TOOLS_OAUTH_TABLE") {
        Ok(table) => oauth.in_dynamodb(table),
        Err(_) => oauth,
    };
    Ok(Server::new(Toolkit::new(api.tools()?)?)
        .info(info)
        .oauth(oauth))
{%- else %}
    Ok(Server::new(Toolkit::new(api.tools()?)?).info(info))
{%- endif %}
}
