//! Tools for AI agents, as one AWS Lambda function.

mod github;
#[cfg(test)]
mod tests;

use lambda_tools::{Error,{% if protocols == "mcp" %} Protocol,{% endif %} prelude::*};

use github::GitHub;

fn main() -> Result<(), Error> {
    // GitHub Enterprise Server has a URL of its own.
    let url = std::env::var("GITHUB_URL");
    run(server(url.as_deref().unwrap_or("https://api.github.com"))?)
}

fn server(github_url: &str) -> Result<Server, Error> {
    let tools = GitHub::at(github_url)?.tools();
{%- if protocols == "mcp" %}
    Ok(Server::new(Toolkit::new(tools)?).protocols([Protocol::Mcp]))
{%- else %}
    Ok(Server::new(Toolkit::new(tools)?))
{%- endif %}
}
