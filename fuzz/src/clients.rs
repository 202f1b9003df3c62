//! The clients of the library, over a transport that keeps each request and returns the response that
//! a target has set.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lambda_tools::{
    axum::body::Bytes,
    client::{ClientOptions, opentool::OpenToolClient, oxp::OxpClient},
    http::{Request, Response, StatusCode},
};

pub(crate) struct Clients {
    pub(crate) oxp: OxpClient,
    pub(crate) opentool: OpenToolClient,
    exchange: Arc<Mutex<Exchange>>,
}

/// The last request, and the response to the next one.
#[derive(Default)]
struct Exchange {
    sent: Request<Bytes>,
    status: StatusCode,
    body: Bytes,
}

fn lock(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clients {
    pub(crate) fn new() -> Self {
        let exchange = Arc::<Mutex<Exchange>>::default();
        let shared = Arc::clone(&exchange);
        let send = move |request| {
            let mut exchange = lock(&shared);
            exchange.sent = request;
            response(exchange.status, exchange.body.clone())
        };
        let options = ClientOptions::default().attempts(1).transport(send);
        let (url, valid) = ("http://127.0.0.1", "the URL is valid");
        Self {
            oxp: OxpClient::new(url, options.clone()).expect(valid),
            opentool: OpenToolClient::new(url, options).expect(valid),
            exchange,
        }
    }

    /// Sets the response to the next requests.
    pub(crate) fn respond_with(&self, status: u16, body: &[u8]) {
        let mut exchange = lock(&self.exchange);
        exchange.status = StatusCode::from_u16(status).expect("the status is valid");
        exchange.body = Bytes::copy_from_slice(body);
    }

    /// Returns the last request.
    pub(crate) fn sent(&self) -> Request<Bytes> {
        lock(&self.exchange).sent.clone()
    }
}

fn response(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let response = Response::builder().status(status);
    let response = response.header("content-type", "application/json");
    response.body(body).expect("the response is valid")
}
