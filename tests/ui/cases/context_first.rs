use lambda_tools::{Context, Failure, Tool};

async fn tool(cx: Context) -> Result<String, Failure> {
    Ok(cx.call_id().to_owned())
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
