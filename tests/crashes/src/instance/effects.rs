//! The server of a process's effects.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::Instance;
use crate::{
    history::What,
    plan::{Behavior, Step},
};

pub(super) async fn serve_effects(instance: Arc<Instance>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let instance = Arc::clone(&instance);
        // Goes on when the function has died.
        tokio::spawn(async move { effect(&instance, stream).await });
    }
}

/// Lets an effect happen, and tells the tool how to go on.
async fn effect(instance: &Arc<Instance>, stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    // A process that died while it connected.
    let wanted: Value = serde_json::from_str(&line).ok()?;
    let run = &instance.run;
    let attempt = instance.attempt()?;
    assert_eq!(wanted["call_id"], run.call_id());
    let item = u32::try_from(wanted["item"].as_u64()?).ok()?;
    run.log(What::EffectReceived(attempt, item));
    if instance.reach(attempt, Step::InTool).await {
        tokio::time::sleep(run.in_flight(attempt)?).await;
    }
    let behavior = run.plan.attempt(attempt).behavior;
    let reply = match behavior {
        Behavior::Refuse => json!("refused"),
        Behavior::Busy => json!("busy"),
        Behavior::Value | Behavior::Panic | Behavior::Hang => {
            let serial = run.new_effect(attempt, item);
            match behavior {
                Behavior::Panic => json!("panic"),
                Behavior::Hang => json!("hang"),
                _ => json!({"done": serial}),
            }
        }
    };
    if instance.reach(attempt, Step::AfterEffect).await {
        return None;
    }
    stream.write_all(format!("{reply}\n").as_bytes()).await.ok()
}
