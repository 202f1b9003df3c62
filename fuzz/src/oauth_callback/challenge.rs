//! A challenge that a user has opened in a browser, and agreed to: its values, and requests to its
//! server.

use std::sync::LazyLock;

use lambda_tools::{OAuth, Server, ServerInfo, secrets::Secrets, testing::LambdaFunction};
use serde_json::{Value, json};

use super::provider::provider;
use crate::{
    runtime::wait,
    server::{SECRETS, google, toolkit},
    store::ResettableStore,
};

/// A challenge that a user has opened in a browser, and agreed to.
pub(super) struct Target {
    function: LambdaFunction,
    pub(super) store: ResettableStore,
    id: String,
    pub(super) state: String,
    pub(super) cookie: String,
    pub(super) form: String,
    /// The consent page for the user [`USER`].
    pub(super) page: String,
}

pub(super) const USER: &str = "user-0123456789-of-this-page";

pub(super) static TARGET: LazyLock<Target> = LazyLock::new(Target::new);

impl Target {
    fn new() -> Self {
        let store = ResettableStore::default();
        let oauth = OAuth::with([google(&provider())]).in_store(store.clone());
        let server = Server::new(toolkit())
            .secrets(Secrets::fixed(SECRETS))
            .oauth(oauth)
            .public_url("https://tools.example")
            .info(ServerInfo::new("Tools <of> \"all\" & one", "1.0.0"));
        let function = LambdaFunction::new(server);
        let mut target = Self {
            function,
            store,
            id: String::new(),
            state: String::new(),
            cookie: String::new(),
            form: String::new(),
            page: String::new(),
        };
        target.id = target.challenge(USER).expect("a challenge");
        let shown = target.request("GET", &target.start(), &json!({}), "");
        target.page = text_of(&shown);
        target.form = between(&target.page, "name=\"form\" value=\"", "\"");
        let cookie = shown["cookies"][0]
            .as_str()
            .or(shown["headers"]["set-cookie"].as_str());
        target.cookie = cookie
            .expect("a cookie")
            .split(';')
            .next()
            .unwrap_or_default()
            .to_owned();
        let headers = json!({"cookie": target.cookie});
        let form = format!("form={}", target.form);
        let started = target.request("POST", &target.start(), &headers, &form);
        let location = started["headers"]["location"].as_str().expect("a redirect");
        let location = url::Url::parse(location).expect("a URL");
        let state = location.query_pairs().find(|(name, _)| name == "state");
        target.state = state.expect("a state").1.into_owned();
        target.store.keep();
        target
    }

    fn start(&self) -> String {
        format!("/authorization/challenges/{}/start", self.id)
    }

    /// Creates a challenge of a user, and returns its id.
    pub(super) fn challenge(&self, user: &str) -> Option<String> {
        let call = json!({"tool_id": "Gmail.GetEmails", "context": {"user_id": user}});
        let response = wait(self.function.invoke(&call.to_string()));
        let response = response.expect("a call by itself has a response");
        let id = response.pointer("/missing_requirements/authorization/0/id");
        id.and_then(Value::as_str).map(str::to_owned)
    }

    pub(super) fn request(&self, method: &str, target: &str, headers: &Value, body: &str) -> Value {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let event = json!({
            "version": "2.0", "rawPath": path, "rawQueryString": query, "headers": headers,
            "requestContext": {"http": {"method": method, "path": path}},
            "body": body, "isBase64Encoded": false,
        });
        wait(self.function.invoke(&event.to_string())).expect("an event has a response")
    }

    pub(super) fn filled(&self, text: &str) -> String {
        let text = text
            .replace("{id}", &self.id)
            .replace("{state}", &self.state);
        text.replace("{cookie}", &self.cookie)
            .replace("{form}", &self.form)
    }
}

pub(super) fn between(text: &str, start: &str, end: &str) -> String {
    let (_, rest) = text.split_once(start).expect("the text contains the start");
    rest.split(end).next().unwrap_or_default().to_owned()
}

pub(super) fn text_of(response: &Value) -> String {
    response["body"].as_str().unwrap_or_default().to_owned()
}
