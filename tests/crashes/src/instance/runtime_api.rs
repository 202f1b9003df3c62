//! The runtime API of a process: hands out events, and takes responses.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use test_support::lambda::calling;
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet};

use super::{Instance, Invocation};
use crate::{
    history::{Answer, Attempt, What},
    plan::Step,
};

/// The events that the runtime API hands out.
pub(super) type Events = Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Invocation>>>;

pub(super) async fn serve_api(instance: Arc<Instance>, listener: TcpListener, events: Events) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let (instance, events) = (Arc::clone(&instance), Arc::clone(&events));
        let service =
            service_fn(move |request| respond(Arc::clone(&instance), Arc::clone(&events), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async { drop(connection.await) });
    }
}

/// The reason for closing a connection without a response.
type Closed = Box<dyn std::error::Error + Send + Sync>;

async fn respond(
    instance: Arc<Instance>,
    events: Events,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Closed> {
    if request.method() == Method::GET {
        return next(&instance, &events).await;
    }
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let id = path.rsplit('/').nth(1).unwrap_or_default();
    let attempt = id
        .parse::<Attempt>()
        .map_err(|_| format!("unexpected request: {path}"))?;
    // A task of its own goes on when the function has died.
    let task = tokio::spawn(async move { accept(&instance, attempt, &body).await });
    if task.await? {
        let response = Response::builder().status(StatusCode::ACCEPTED);
        Ok(response.body(Full::default())?)
    } else {
        Err("dropped by the plan".into())
    }
}

/// Hands out an event.
async fn next(instance: &Arc<Instance>, events: &Events) -> Result<Response<Full<Bytes>>, Closed> {
    instance.is_started.notify_one();
    let invocation = events
        .lock()
        .await
        .recv()
        .await
        .ok_or("the run has ended")?;
    let Invocation {
        attempt,
        item,
        client,
    } = invocation;
    let run = &instance.run;
    let deadline = SystemTime::now() + run.plan.limit;
    let deadline = deadline.duration_since(UNIX_EPOCH)?.as_millis();
    *instance.attempt.lock().unwrap() = Some(attempt);
    *instance.client.lock().unwrap() = Some(client);
    run.delivered(attempt, instance.number, item);
    let (dying, step) = (Arc::clone(instance), Step::Delivered);
    tokio::spawn(async move { dying.reach(attempt, step).await });
    let body = json!({
        "tool_id": run.plan.policy.tool(), "call_id": run.call_id(), "input": {"item": item},
    });
    let arn = "arn:aws:lambda:us-east-1:1:function:t";
    let response = Response::builder()
        .header("lambda-runtime-aws-request-id", attempt.to_string())
        .header("lambda-runtime-deadline-ms", deadline.to_string())
        .header("lambda-runtime-invoked-function-arn", arn)
        .header("content-type", "application/json");
    Ok(response.body(calling(&body, &[]).to_string().into())?)
}

/// Takes a response. Returns false if the platform drops it.
async fn accept(instance: &Arc<Instance>, attempt: Attempt, body: &[u8]) -> bool {
    let answer = Answer::read(body);
    let is_dead = instance.reach(attempt, Step::BeforeAnswer).await;
    instance.run.log(What::Answered {
        attempt,
        is_accepted: !is_dead,
        answer: answer.clone(),
    });
    if is_dead {
        return false;
    }
    if let Some(client) = instance.client.lock().unwrap().take() {
        let _ = client.send(answer);
    }
    let dying = Arc::clone(instance);
    tokio::spawn(async move { dying.reach(attempt, Step::AfterAnswer).await });
    true
}
