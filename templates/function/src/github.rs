//! GitHub's issues: a tool that calls an HTTP API with a secret.

use std::time::Duration;

use lambda_tools::prelude::*;
use serde::{Deserialize, Serialize};

/// GitHub's API, which all calls share.
#[derive(Clone)]
pub struct GitHub {
    http: reqwest::Client,
    url: String,
}

impl GitHub {
    pub fn at(url: &str) -> Result<Self, reqwest::Error> {
        // GitHub rejects requests without a user agent.
        let http = reqwest::Client::builder().user_agent(env!("CARGO_PKG_NAME"));
        let http = http.timeout(Duration::from_secs(10)).build()?;
        let url = url.to_owned();
        Ok(Self { http, url })
    }

    pub fn tools(&self) -> Vec<Tool> {
        let find_issues = Tool::with_state("GitHub.FindIssues@1.0.0", self, find_issues);
        vec![find_issues.secret("GITHUB_TOKEN").read_only(true)]
    }
}

/// Finds issues and pull requests on GitHub.
#[derive(Deserialize, JsonSchema)]
struct FindIssues {
    /// The search, in GitHub's syntax.
    #[schemars(length(min = 1, max = 256))]
    #[schemars(example = "repo:rust-lang/rust is:issue is:open panic")]
    query: String,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Found {
    /// The number of all results.
    total_count: u32,
    /// The best results, at most five.
    items: Vec<Issue>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Issue {
    /// Its title.
    title: String,
    /// The URL of its page.
    html_url: String,
}

async fn find_issues(github: GitHub, input: FindIssues, cx: Context) -> Result<Found, Failure> {
    let request = github.http.get(format!("{}/search/issues", github.url));
    let request = request.query(&[("q", &*input.query), ("per_page", "5")]);
    let token = cx.secret("GITHUB_TOKEN")?;
    let response = request.bearer_auth(token.expose()).send().await?;
    if !response.status().is_success() {
        return Err(Failure::from_response(response).await);
    }
    Ok(response.json().await?)
}
