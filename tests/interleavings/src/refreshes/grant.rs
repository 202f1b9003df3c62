//! A server with a tool that needs a user's token, and the user's consent.

use lambda_tools::{
    Context, Failure, OAuth, Server, Tool, Toolkit, oauth::Provider, secrets::Secrets,
    testing::LambdaFunction,
};
use serde_json::{Value, json};

use super::provider::{ProviderState, transport};
use crate::{network::Connection, shared::Shared};

/// The tool that returns the user's token.
pub(super) const TOOL: &str = "Mail.Read";
pub(super) const USER: &str = "user";

/// Returns the server in a process.
pub(super) fn server(process: &Connection, state: &Shared<ProviderState>) -> Server {
    let read = |_: Value, cx: Context| async move {
        let token = cx.token("p")?;
        Ok::<_, Failure>(json!(token.expose()))
    };
    let object = json!({"type": "object", "properties": {}});
    let tool = Tool::dynamic("Mail.Read@1.0.0", "Reads mail.", object, json!({}), read);
    let tool = tool.authorization("p", ["mail"]).idempotent();
    let (authorize, token) = ("https://p.example/authorize", "https://p.example/token");
    let provider = Provider::new("p", "client", "CLIENT_SECRET", authorize, token);
    let (connection, state) = (process.clone(), state.clone());
    let send = move |request| transport(connection.clone(), state.clone(), request);
    let oauth = OAuth::with([provider.transport(send)]);
    let secrets = [
        ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
        ("CLIENT_SECRET", "secret"),
    ];
    Server::new(Toolkit::new([tool.timeout(super::LEFT)]).unwrap())
        .secrets(Secrets::fixed(secrets))
        .public_url("http://127.0.0.1")
        .oauth(oauth.in_store(process.clone()))
}

/// Lets the user consent.
pub(super) async fn consent(function: &LambdaFunction) {
    let send = async |method: &str, url: &str, cookie: &str, body: &str| {
        let headers = json!({"content-type": "application/json", "cookie": cookie});
        send(function, method, url, &headers, body).await
    };
    let call = json!({"tool_id": TOOL, "context": {"user_id": USER}}).to_string();
    let response = send("POST", "/tools/call", "", &call).await;
    let body: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
    let challenge = &body["missing_requirements"]["authorization"][0];
    let id = challenge["id"].as_str().unwrap();
    let path = format!("/authorization/challenges/{id}/start");
    let page = send("GET", &path, "", "").await;
    let cookie = page["cookies"][0].as_str().unwrap();
    let (cookie, _) = cookie.split_once(';').unwrap();
    let html = page["body"].as_str().unwrap();
    let (_, form) = html.split_once("name=\"form\" value=\"").unwrap();
    let (form, _) = form.split_once('"').unwrap();
    let redirect = send("POST", &path, cookie, &format!("form={form}")).await;
    let location = redirect["headers"]["location"].as_str().unwrap();
    let (_, state) = location.split_once("state=").unwrap();
    let (state, _) = state.split_once('&').unwrap();
    let callback = format!("/authorization/p/callback?code=c&state={state}");
    send("GET", &callback, cookie, "").await;
}

/// Sends a request as an event of an HTTP API.
pub(crate) async fn send(
    function: &LambdaFunction,
    method: &str,
    url: &str,
    headers: &Value,
    body: &str,
) -> Value {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let event = json!({
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {"http": {"method": method, "path": path}},
        "body": body,
        "isBase64Encoded": false,
    });
    function.invoke(&event.to_string()).await.unwrap()
}
