//! The lists for chat models of the functions in this repository, and the requests that name an MCP
//! server, checked with the APIs' own SDKs.

use lambda_tools::{
    Failure, Tool, Toolkit,
    models::{ModelApi, ModelTools},
};
use serde_json::{Value, json};
use test_support::{
    documents::blocks,
    models::{LISTS, assert_list, check_with_sdks},
};

use crate::support::{Running, faults, repository, toolbox};

/// Returns the lists of a running server.
async fn lists_of(url: &str) -> Vec<(&'static str, Vec<Value>)> {
    let mut lists = Vec::new();
    for (api, query) in LISTS {
        let response = reqwest::get(format!("{url}/tools?{query}")).await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{query}");
        lists.push((api, response.json().await.unwrap()));
    }
    lists
}

/// Returns tools with the definitions in the files of the tests.
fn defined() -> Toolkit {
    async fn nothing(_: Value) -> Result<Value, Failure> {
        Ok(Value::Null)
    }
    let files = ["tests/definitions", "tests/spec/examples"].map(|folder| {
        let files = std::fs::read_dir(repository(folder)).unwrap();
        files.map(|file| file.unwrap().path())
    });
    let mut tools = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    for file in files.into_iter().flatten() {
        let definition: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mut schema = definition["input_schema"].clone();
        if let Some(wrapped) = schema
            .get("parameters")
            .filter(|it| it.get("type").is_some())
        {
            schema = wrapped.clone();
        }
        let (Some(id), Some(text)) = (
            definition["id"].as_str(),
            definition["description"].as_str(),
        ) else {
            continue;
        };
        if ids.insert(id.to_owned()) && schema["type"] == "object" {
            let (id, text) = (id.to_owned(), text.to_owned());
            tools.push(Tool::dynamic(id, text, schema, json!({}), nothing));
        }
    }
    assert!(tools.len() >= 7, "{ids:?}");
    Toolkit::new(tools).unwrap()
}

#[tokio::test]
#[ignore = "needs the SDKs of models' APIs, and what tests/all builds"]
async fn the_sdks_accept_the_lists_of_all_functions() {
    let (_toolbox, toolbox) = Running::serving(&mut toolbox());
    let (_faults, faults) = Running::serving(&mut faults());
    let mut lists = lists_of(&toolbox).await;
    lists.extend(lists_of(&faults).await);
    let defined = defined();
    let apis = [
        ("openai", ModelApi::OpenAi { strict: false }),
        ("openai", ModelApi::OpenAi { strict: true }),
        (
            "openai-responses",
            ModelApi::OpenAiResponses { strict: true },
        ),
        ("anthropic", ModelApi::Anthropic),
        ("gemini", ModelApi::Gemini),
        ("bedrock", ModelApi::Bedrock),
        ("agentcore", ModelApi::AgentCore),
    ];
    let list = |api| ModelTools::new(api, defined.definitions()).list().to_vec();
    lists.extend(apis.map(|(name, api)| (name, list(api))));
    let lines: Vec<_> = lists
        .iter()
        .map(|(api, tools)| json!({"api": api, "tools": tools}))
        .collect();
    for (api, tools) in &lists {
        assert_list(api, tools);
    }
    check_with_sdks(&lines).unwrap();
}

#[test]
#[ignore = "needs the SDKs of models' APIs; run tests/all"]
fn the_sdks_accept_the_requests_in_the_page_of_mcp_clients() {
    let page = std::fs::read_to_string(repository("docs/mcp.md")).unwrap();
    let (_, beta) = page.split_once("`anthropic-beta: ").unwrap();
    let (beta, _) = beta.split_once('`').unwrap();
    let is_request = |mark: &str| mark.contains("with the types of");
    let blocks = blocks("docs/mcp.md", &page).into_iter();
    let requests = blocks.filter(|block| block.mark.as_deref().is_some_and(is_request));
    let lines: Vec<_> = requests
        .map(|block| serde_json::from_str::<Value>(&block.text).unwrap())
        .map(|request| json!({"request": request, "beta": beta}))
        .collect();
    check_with_sdks(&lines).unwrap();
    // Of OpenAI, Anthropic and AWS; each with another name of a field is not accepted.
    assert_eq!(lines.len(), 3);
    for line in lines {
        let wrong = line.to_string().replace("_url", "_uri");
        let wrong = wrong
            .replace("mcp_server_name", "server")
            .replace("endpoint", "url");
        let wrong = serde_json::from_str(&wrong).unwrap();
        assert!(check_with_sdks(&[wrong]).is_err(), "{line}");
    }
}
