//! The lower bound: `lambda_http` on one thread, and a constant response.

use lambda_http::{Body, Error, Request, Response, run, service_fn};

const ANSWER: &str = r#"{"call_id":"c","success":true,"duration":0,"value":15}"#;

async fn answer(_: Request) -> Result<Response<Body>, Error> {
    let response = Response::builder().header("content-type", "application/json");
    Ok(response.body(ANSWER.into())?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(answer)).await
}
