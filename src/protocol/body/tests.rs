//! Streams of early chunks and a response.

use std::{
    convert::Infallible,
    future::{pending, ready},
    sync::Arc,
};

use tokio::{
    sync::{
        Notify,
        mpsc::{UnboundedReceiver, unbounded_channel},
    },
    task::yield_now,
};

use super::*;

type Texts = UnboundedReceiver<&'static str>;

/// Returns the texts that are sent, until an empty one; the stream panics if it is polled after its end.
fn chunks(sent: Texts) -> Body {
    let next = async |mut sent: Texts| match sent.recv().await? {
        "" => None,
        text => Some((Ok::<_, Infallible>(text), sent)),
    };
    Body::from_stream(stream::unfold(sent, next))
}

fn response(text: &'static str) -> Response {
    Response::new(Body::from(text))
}

async fn next(body: &mut Body) -> Option<String> {
    let chunk = body.frame().await?.unwrap().into_data().unwrap();
    Some(String::from_utf8(chunk.to_vec()).unwrap())
}

#[tokio::test]
async fn chunks_are_sent_while_the_call_runs() {
    let (texts, sent) = unbounded_channel();
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let call = async move {
        texts.send("first").unwrap();
        gate.notified().await;
        // On several threads, a tool may send a chunk and end between two polls.
        texts.send("second").unwrap();
        response("last")
    };
    let mut body = streamed(chunks(sent), Box::pin(call)).await.unwrap();
    assert_eq!(next(&mut body).await.unwrap(), "first");
    assert!(body.frame().now_or_never().is_none(), "the tool waits");
    go.notify_one();
    let last = "event: message\ndata: last\n\n";
    for text in ["second", last] {
        assert_eq!(next(&mut body).await.unwrap(), text);
    }
    assert_eq!(next(&mut body).await, None);
}

/// tokio interrupts a task that has received 128 values, although more are there.
#[tokio::test]
async fn no_chunk_of_many_is_lost_when_the_call_ends() {
    let (texts, sent) = unbounded_channel();
    texts.send("early").unwrap();
    let call = async move {
        yield_now().await;
        for _ in 0..300 {
            texts.send("more").unwrap();
        }
        response("last")
    };
    let body = streamed(chunks(sent), Box::pin(call)).await.unwrap();
    let text = body.collect().await.unwrap().to_bytes();
    let last = "event: message\ndata: last\n\n";
    assert_eq!(text, format!("early{}{last}", "more".repeat(300)));
}

#[tokio::test]
async fn a_call_outlives_its_early_chunks() {
    let (texts, sent) = unbounded_channel();
    for text in ["early", ""] {
        texts.send(text).unwrap();
    }
    let call = async move {
        for _ in 0..3 {
            yield_now().await;
        }
        response("last")
    };
    let body = streamed(chunks(sent), Box::pin(call)).await.unwrap();
    let text = body.collect().await.unwrap().to_bytes();
    assert_eq!(text, "earlyevent: message\ndata: last\n\n");
}

#[tokio::test]
async fn a_call_without_early_chunks_gets_a_whole_response() {
    let silent = Body::from_stream(stream::once(pending::<Result<&str, Infallible>>()));
    let whole = streamed(silent, Box::pin(ready(response("whole")))).await;
    let mut body = whole.unwrap_err().into_body();
    assert_eq!(next(&mut body).await.unwrap(), "whole");
}
