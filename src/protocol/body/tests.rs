//! Streams of early chunks and a response.

use std::convert::Infallible;

use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
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
    let body = streamed(chunks(sent), Box::pin(call), Response::new).await;
    let text = body.into_body().collect().await.unwrap().to_bytes();
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
    let body = streamed(chunks(sent), Box::pin(call), Response::new).await;
    let text = body.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text, "earlyevent: message\ndata: last\n\n");
}
