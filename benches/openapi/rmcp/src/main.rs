//! Prints the tools that rmcp-openapi makes of an OpenAPI document in JSON, as a JSON list of
//! `{"name", "description", "inputSchema"}`. Writes `{"seconds", "peak_mb"}` to standard error: the time from reading
//! the file to the list, and the most memory that the process had. Exits with 1, and an "error" there, if the crate
//! returns one: it then makes no tool at all.

use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use rmcp_openapi::Server;
use serde_json::{Value, json};

/// Loads a document as the crate's own server does, and takes the list that the server sends to clients.
fn tools(path: &str) -> Result<Vec<Value>, String> {
    let document: Value =
        serde_json::from_str(&fs::read_to_string(path).map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())?;
    // No call is made.
    let base_url = "http://127.0.0.1/".parse().expect("a URL");
    let mut server = Server::new(document, base_url, None, None, false, false, false);
    server
        .load_openapi_spec()
        .map_err(|error| error.to_string())?;
    let tools = server.tool_collection.to_mcp_tools();
    Ok(tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}))
        .collect())
}

/// The peak of the resident memory, in megabytes, as Linux counts it.
fn peak_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kilobytes * 1024.0 / 1e5).round() / 10.0)
}

fn main() -> ExitCode {
    let path = env::args().nth(1).expect("the path of a document");
    let start = Instant::now();
    let tools = tools(&path);
    let mut figures = json!({"seconds": start.elapsed().as_secs_f64(), "peak_mb": peak_mb()});
    let code = match tools {
        Ok(tools) => {
            println!("{}", Value::from(tools));
            ExitCode::SUCCESS
        }
        Err(error) => {
            figures["error"] = error.into();
            ExitCode::FAILURE
        }
    };
    eprintln!("{figures}");
    code
}
