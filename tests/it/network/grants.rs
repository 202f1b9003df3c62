//! The requests of calls with users' grants, and of the pages on which users give them.

use std::time::Duration;

use lambda_tools::idempotency::DynamoDb;
use test_support::{
    aws::AwsProxy,
    issuer::{Issuer, tokens_for},
    requests::Recorder,
};

use super::{Measured, Network, SHORT, TABLE};
use crate::{
    aws,
    consent_page::local::{Local, oauth_at},
};

fn instance(proxy: &AwsProxy, provider: &Issuer) -> Local {
    let store = DynamoDb::new(TABLE).client(aws::dynamodb(proxy));
    Local::with_oauth(oauth_at(provider).in_store(store))
}

async fn succeed(instance: &Local) {
    let called = instance.call("alice").await;
    assert!(called["value"].is_string(), "{called}");
}

pub(super) async fn measure(network: &Network, measured: &mut Measured) {
    let provider = Issuer::start_at("", Some(&network.recorder)).await;
    let instance = instance(&network.proxy, &provider);
    // Tokens that are refreshed by the next call.
    provider.change(|it| it.tokens = |_| tokens_for(30));
    let mut add = |case: &str| measured.add(case, &network.recorder.take());
    let id = instance.challenge("alice").await;
    add("a call whose user has not given a grant yet");
    instance.challenge("alice").await;
    add("another call whose user has not given a grant yet");
    let page = instance.open(&id).await;
    add("the consent page");
    let redirect = instance.press(&id, &page).await;
    add("its button");
    let query = format!("code=c&state={}", redirect.state());
    instance.back(redirect.cookie(), &query).await;
    add("the provider's redirect back");
    assert_eq!(instance.status(&id).await, "completed");
    add("the status of a challenge");
    succeed(&instance).await;
    add("a call with a user's grant whose token expires within a minute");
    while_another_refreshes(network, (&instance, &provider), measured).await;
    succeed(&instance).await;
    measured.add("a call with a user's grant", &network.recorder.take());
}

async fn while_another_refreshes(
    network: &Network,
    (refreshing, provider): (&Local, &Issuer),
    measured: &mut Measured,
) {
    let recorder = Recorder::with_delay(SHORT);
    let proxy = network.emulator.recorded_proxy(&recorder).await;
    let other = instance(&proxy, provider);
    let wait_until = async |recorder: &Recorder, count: usize| {
        while recorder.count() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
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
        tokio::join!(succeed(&other), release);
    };
    tokio::join!(succeed(refreshing), waiting);
    let case = "the same while another instance refreshes the token, if one look is enough";
    measured.add(case, &recorder.take());
    network.recorder.take();
}
