//! Shutdown: a call is running when the server gets SIGTERM.

use std::{io::ErrorKind, net::TcpStream, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use serde_json::{Value, json};
use test_support::{Served, assert_program};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

use super::{OPEN, URL, health, value_of};
use crate::containers::image::Container;

/// An API whose tool call ends when the test says so.
struct SlowApi {
    served: Served,
    called: Arc<Notify>,
    may_answer: Arc<Notify>,
}

impl SlowApi {
    async fn start() -> Self {
        let (called, may_answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let both = (Arc::clone(&called), Arc::clone(&may_answer));
        let answer = async move || {
            both.0.notify_one();
            both.1.notified().await;
            json!({"resultSizeEstimate": 0}).to_string()
        };
        let router = Router::new().route("/gmail/v1/users/me/messages", get(answer));
        Self {
            served: Served::start(router).await,
            called,
            may_answer,
        }
    }

    /// Starts a container with these settings, and a call; returns both once the call is running.
    async fn call_in_container(&self, settings: &[(&str, &str)]) -> (Container, JoinHandle<Value>) {
        let api = [OPEN, ("GMAIL_URL", self.served.url.as_str())];
        let container = Container::start(&[&api, settings].concat());
        let context = json!({"user_id": "u", "authorization": [{"id": "google", "token": "t"}]});
        let call = json!({"tool_id": "Gmail.GetEmails", "context": context});
        let call = tokio::spawn(async move { value_of(URL, &call).await });
        timeout(Duration::from_secs(10), self.called.notified())
            .await
            .expect("the tool calls the API");
        (container, call)
    }
}

/// Waits until the server refuses connections.
async fn refuses_connections() {
    let is_refused = || {
        let connected = TcpStream::connect("127.0.0.1:8000");
        connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    for _ in 0..200 {
        if is_refused() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server still accepts connections");
}

/// Kubernetes: probes request the pod's address; a pod that ends is not ready, and its calls end.
mod kubernetes {
    use super::*;

    #[tokio::test]
    #[ignore = "a program that tests start"]
    async fn program_of_tests() {
        assert_program();
        let api = SlowApi::start().await;
        let (container, call) = api
            .call_in_container(&[
                ("SHUTDOWN_SECONDS", "20"),
                ("ALLOWED_HOSTS", "tools.apps.svc.cluster.local"),
            ])
            .await;
        for (host, status) in [
            ("10.1.2.3:8000", 200),
            ("[fd00::7]:8000", 200),
            ("tools.apps.svc.cluster.local", 200),
            ("evil.example", 403),
        ] {
            assert_eq!(health(URL, host).await, status, "{host}");
        }
        container.terminate();
        refuses_connections().await;
        // Longer than without the setting.
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert!(!call.is_finished());
        api.may_answer.notify_one();
        assert_eq!(call.await.unwrap(), json!({"emails": []}));
        assert_eq!(container.end_within(3).0, Some(0));
    }
}

mod limit {
    use super::*;

    #[tokio::test]
    #[ignore = "a program that tests start"]
    async fn program_of_tests() {
        assert_program();
        let api = SlowApi::start().await;
        let (container, call) = api.call_in_container(&[("SHUTDOWN_SECONDS", "1")]).await;
        container.terminate();
        let (code, lines) = container.end_within(4);
        assert_eq!(code, Some(0));
        let lines = lines.concat();
        assert!(
            lines.contains("stopped while calls were still running"),
            "{lines}"
        );
        assert!(call.await.is_err());
    }
}
