//! A span collector on a loopback address: OTLP over HTTP.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use prost::Message;
use test_support::Served;

/// The bodies of the requests, undecoded.
type Bodies = Arc<Mutex<Vec<Bytes>>>;

pub(crate) struct Collector {
    bodies: Bodies,
    served: Served,
}

async fn record(State(bodies): State<Bodies>, body: Bytes) {
    bodies.lock().unwrap().push(body);
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let bodies = Bodies::default();
        let router = Router::new()
            .route("/v1/traces", post(record))
            .route("/hangs/v1/traces", post(std::future::pending::<()>))
            .route(
                "/rejects/v1/traces",
                post(async |state, body| {
                    record(state, body).await;
                    StatusCode::SERVICE_UNAVAILABLE
                }),
            )
            .with_state(Arc::clone(&bodies));
        let served = Served::start(router).await;
        Self { bodies, served }
    }

    pub(crate) fn url(&self) -> String {
        self.served.url.clone()
    }

    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.bodies.lock().unwrap().clone()
    }

    /// Returns the bodies of all requests, with what is no text replaced.
    pub(crate) fn texts(&self) -> Vec<String> {
        let lossy = |body: &Bytes| String::from_utf8_lossy(body).into_owned();
        self.bodies().iter().map(lossy).collect()
    }

    /// Returns all spans, in the order they ended.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let decode = |body: Bytes| ExportTraceServiceRequest::decode(body).unwrap();
        let requests = self.bodies().into_iter().map(decode);
        requests
            .flat_map(|request| request.resource_spans)
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect()
    }

    /// Returns the resource attributes of the first spans.
    pub(crate) fn resource(&self) -> Vec<KeyValue> {
        let bodies = self.bodies();
        let request = ExportTraceServiceRequest::decode(&bodies[0][..]).unwrap();
        let resource = request.resource_spans[0].resource.clone();
        resource.unwrap().attributes
    }

    /// Waits for a span of this name.
    pub(crate) async fn span(&self, name: &str) -> Span {
        for _ in 0..100 {
            if let Some(span) = self.spans().into_iter().find(|span| span.name == name) {
                return span;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no span {name} among {:#?}", self.spans());
    }
}

/// Returns the text of an attribute.
pub(crate) fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let attribute = attributes.iter().find(|it| it.key == name)?;
    match attribute.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::BoolValue(value) => Some(value.to_string()),
        other => Some(format!("{other:?}")),
    }
}
