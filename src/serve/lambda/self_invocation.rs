//! Tasks on Lambda: the function invokes itself, and the event starts the work.

use std::{env, sync::OnceLock};

use aws_sdk_lambda::{Client, primitives::Blob, types::InvocationType};
use serde_json::json;

use crate::{
    Server, StoreError, call::background::Ticket, event::TASK_EVENT, tool::parts::TaskSupport,
};

/// Lets the function hand its calls over to itself, if the server has tasks and all instances remember
/// the same calls.
pub(super) fn enabled(mut server: Server) -> Server {
    if !server.tasks.unwrap_or_default() {
        return server;
    }
    let calls = server.idempotency.as_ref();
    let mut entries = server.toolkit.entries().iter();
    if calls.is_some_and(|it| it.shared_store().is_some()) {
        server.worker = Some(Box::new(|ticket, _| Box::pin(invoke(ticket))));
    } else if entries.any(|it| it.tool.tasks != TaskSupport::Never) {
        tracing::warn!(
            "tools in the background run in their requests: no table remembers their calls \
             (TOOLS_IDEMPOTENCY=dynamodb)"
        );
    }
    server
}

async fn invoke(ticket: Ticket) -> Result<(), StoreError> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    let client = lambda_tools_records::aws::client(&CLIENT, "LAMBDA", Client::new)?;
    // The event goes to the same version of the program, which has the tool.
    let version = env::var("AWS_LAMBDA_FUNCTION_VERSION").ok();
    let version = version.filter(|it| it != "$LATEST");
    let request = client
        .invoke()
        .set_function_name(env::var("AWS_LAMBDA_FUNCTION_NAME").ok())
        .set_qualifier(version)
        .invocation_type(InvocationType::Event)
        .payload(Blob::new(json!({TASK_EVENT: ticket}).to_string()));
    let denied = |code: &str, _: &str| {
        (code == "AccessDeniedException").then(|| {
            let text = "allow lambda:InvokeFunction on the function itself, for its tasks";
            StoreError::denied(text)
        })
    };
    let sent = request.send().await;
    let sent = sent.map_err(|error| lambda_tools_records::aws::error_of("Lambda", &error, denied));
    sent.map(drop)
}
