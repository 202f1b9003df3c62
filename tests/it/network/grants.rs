//! The requests of calls with users' grants, and of the pages on which users give them.

use lambda_tools::{
    Context, Failure, OAuth, Tool, Toolkit, idempotency::DynamoDb, oauth, secrets::Secrets,
};
use serde_json::{Value, json};
use test_support::{
    Served,
    aws::AwsProxy,
    issuer::{Issuer, tokens_for},
    openid::form_in,
    requests::Recorder,
};

use super::{Measured, Network, SHORT, TABLE};
use crate::{aws, support::server};

/// A running server.
struct Instance(Served);

async fn read(_: Value, cx: Context) -> Result<Value, Failure> {
    cx.token("mail")?;
    Ok(json!("read"))
}

impl Instance {
    async fn start(proxy: &AwsProxy, provider: &Issuer) -> Self {
        let endpoint = |name: &str| format!("{}/{name}", provider.url);
        let (authorize, token) = (endpoint("authorize"), endpoint("token"));
        let mail = oauth::Provider::new("mail", "client", "CLIENT_SECRET", authorize, token);
        let store = DynamoDb::new(TABLE).client(aws::dynamodb(proxy));
        let object = json!({"type": "object"});
        let tool = Tool::dynamic("Mail.Read@1.0.0", "Reads.", object, json!({}), read);
        let tool = tool.authorization("mail", ["read"]).user_id().idempotent();
        let server = server(Toolkit::new([tool]).unwrap())
            .secrets(Secrets::fixed([
                ("CLIENT_SECRET", "secret-of-the-client"),
                ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef"),
            ]))
            .oauth(OAuth::with([mail]).in_store(store));
        let router = async |url: &str| server.public_url(url).into_router().unwrap();
        Self(Served::start_with(router).await)
    }

    async fn call(&self) -> Value {
        let body = json!({"tool_id": "Mail.Read", "context": {"user_id": "alice"}, "input": {}});
        let url = format!("{}/tools/call", self.0.url);
        let request = reqwest::Client::new().post(url).json(&body);
        request.send().await.unwrap().json().await.unwrap()
    }

    async fn succeed(&self) {
        let body = self.call().await;
        assert_eq!(body["value"], "read", "{body}");
    }
}

pub(super) async fn measure(network: &Network, measured: &mut Measured) {
    let provider = Issuer::start_at("", Some(&network.recorder)).await;
    let instance = Instance::start(&network.proxy, &provider).await;
    // Tokens that are refreshed by the next call.
    provider.change(|it| it.tokens = |_| tokens_for(30));
    allow(network, &instance, measured).await;

    instance.succeed().await;
    let case = "a call with a user's grant whose token expires within a minute";
    measured.add(case, &network.recorder.take());
    while_another_refreshes(network, (&instance, &provider), measured).await;
    instance.succeed().await;
    measured.add("a call with a user's grant", &network.recorder.take());
}

/// Takes a user through the pages.
async fn allow(network: &Network, instance: &Instance, measured: &mut Measured) {
    let mut add = |case: &str| measured.add(case, &network.recorder.take());
    let body = instance.call().await.to_string();
    add("a call whose user has not given a grant yet");
    let url = body.split('"').find(|text| text.ends_with("/start"));
    let url = url.unwrap_or_else(|| panic!("{body}")).to_owned();
    instance.call().await;
    add("another call whose user has not given a grant yet");

    let browser = reqwest::Client::builder()
        .cookie_store(true)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let page = browser
        .get(&url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    add("the consent page");
    let form = form_in(&page).unwrap_or_else(|| panic!("{page}"));
    let redirect = browser
        .post(&url)
        .form(&[("form", form)])
        .send()
        .await
        .unwrap();
    add("its button");
    let location = redirect.headers()["location"].to_str().unwrap();
    let location = reqwest::Url::parse(location).unwrap();
    let state = location.query_pairs().find(|(name, _)| name == "state");
    let state = state.unwrap().1.into_owned();
    let callback = format!(
        "{}/authorization/mail/callback?code=c&state={state}",
        instance.0.url
    );
    let page = browser
        .get(callback)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(page.contains("Done"), "{page}");
    add("the provider's redirect back");
    let status = reqwest::get(url.strip_suffix("/start").unwrap())
        .await
        .unwrap();
    assert_eq!(status.json::<Value>().await.unwrap()["status"], "completed");
    add("the status of a challenge");
}

async fn while_another_refreshes(
    network: &Network,
    (instance, provider): (&Instance, &Issuer),
    measured: &mut Measured,
) {
    let recorder = Recorder::with_delay(SHORT);
    let proxy = network.emulator.recorded_proxy(&recorder).await;
    let other = Instance::start(&proxy, provider).await;
    let wait_until = async |recorder: &Recorder, count: usize| {
        while recorder.count() < count {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    let held = provider.issuing.lock().await;
    let waiting = async {
        // The lease is taken once the provider has been asked.
        wait_until(&network.recorder, 4).await;
        let release = async {
            wait_until(&recorder, 2).await;
            provider.change(|it| it.tokens = |_| tokens_for(3600));
            drop(held);
        };
        tokio::join!(other.succeed(), release);
    };
    tokio::join!(instance.succeed(), waiting);
    let case = "the same while another instance refreshes the token, if one look is enough";
    measured.add(case, &recorder.take());
    network.recorder.take();
}
