//! The arguments of the command.
//!
//! The text of `--help` is made of the comments here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use reqwest::Url;
use semver::Version;
use serde_json::Value;

const REPEATED: &str = "\
Options that choose, name or set something can be repeated; those with `,…` take several values at once.
An ID is that of an operation, or its method and path: `GET /pets/{id}`.";

/// Tools for AI agents on AWS Lambda.
#[derive(Parser)]
#[command(name = "lambda-tools", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves the tools of documents on this machine
    #[command(after_help = REPEATED)]
    Serve(Box<Serve>),
    /// Turns operations of an OpenAPI document into tools
    #[command(after_help = REPEATED)]
    Openapi(Box<Options>),
    /// Packs tools as an AWS Lambda function, whose program is this executable
    Zip(Zip),
    /// Connects to a server as agents' clients do, and explains what would fail
    Check(Server),
}

/// The options of `lambda-tools serve`.
#[derive(Args)]
pub(crate) struct Serve {
    /// Files or URLs: OpenAPI 3.0, 3.1 or 3.2, JSON or YAML; or files of tools, to which only --base-url and
    /// --allow-private apply
    #[arg(required = true, value_name = "FILE_OR_URL")]
    pub(crate) documents: Vec<String>,
    #[command(flatten)]
    pub(crate) conversion: Conversion,
}

/// The options of `lambda-tools check`.
#[derive(Args)]
pub(crate) struct Server {
    /// The URL that clients get; it usually ends with `/mcp`
    pub(crate) url: Url,
    /// Sends an API key or an access token, as `Authorization: Bearer KEY`
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Lets you sign in with a browser, as agents' users do, and sends the token
    #[arg(long, conflicts_with = "key")]
    pub(crate) sign_in: bool,
    /// Uses a client that is registered already, without a secret, with the redirect URI `http://127.0.0.1/callback`
    #[arg(long, value_name = "ID", requires = "sign_in")]
    pub(crate) client_id: Option<String>,
    /// Calls this tool once, which may have effects, or more often if it only reads
    #[arg(long, num_args = 2, value_names = ["TOOL", "JSON"])]
    pub(crate) call: Vec<String>,
}

/// The options of `lambda-tools openapi`.
#[derive(Args)]
pub(crate) struct Options {
    /// A file or a URL: OpenAPI 3.0, 3.1 or 3.2, JSON or YAML
    #[arg(required_unless_present = "update")]
    pub(crate) document: Option<String>,
    #[command(flatten)]
    pub(crate) conversion: Conversion,
    #[command(flatten)]
    pub(crate) results: Results,
}

/// The options of `lambda-tools zip`.
#[derive(Args)]
pub(crate) struct Zip {
    /// A file of tools, which `lambda-tools openapi` has written
    pub(crate) tools: PathBuf,
    /// The folder for the program, the tools, their zip and a template
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// The function's processor
    #[arg(long, default_value = "x86_64", value_parser = ["x86_64", "arm64"], overrides_with = "architecture")]
    pub(crate) architecture: String,
}

/// How a document becomes tools.
#[derive(Args)]
pub(crate) struct Conversion {
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) access: Access,
}

/// The operations that become tools.
#[derive(Args)]
#[command(next_help_heading = "Choice of operations")]
pub(crate) struct Choice {
    /// Chooses the operations with a tag
    #[arg(long, value_name = "TAG")]
    pub(crate) include_tag: Vec<String>,
    /// Chooses operations by their ids
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub(crate) include_operation: Vec<String>,
    /// Chooses the operations of paths; `*` is any text
    #[arg(long, value_name = "GLOB")]
    pub(crate) include_path: Vec<String>,
    /// Chooses operations by their methods, or narrows the choice to them
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    pub(crate) include_method: Vec<String>,
    /// Leaves operations out
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,
    /// Chooses all operations
    #[arg(long)]
    pub(crate) all: bool,
    /// Serves tools that search, describe and call the operations, in place of one for each
    #[arg(long)]
    pub(crate) searchable: bool,
    /// Allows more than 40 tools in one list
    #[arg(long)]
    pub(crate) list_all: bool,
}

/// How tools differ from the document.
#[derive(Args)]
#[command(next_help_heading = "Names and descriptions")]
pub(crate) struct Changes {
    /// The toolkit's name; by default made of the document's title
    #[arg(long, value_name = "NAME")]
    pub(crate) toolkit: Option<String>,
    /// The version of all tools; by default 1.0.0
    #[arg(long, value_name = "X.Y.Z")]
    pub(crate) tool_version: Option<Version>,
    /// Applies an OpenAPI Overlay 1.0 or 1.1 to the document first
    #[arg(long, value_name = "FILE")]
    pub(crate) overlay: Vec<String>,
    /// Names an operation's tool
    #[arg(long, value_name = "ID=NAME", value_parser = pair)]
    pub(crate) rename: Vec<Pair>,
    /// Describes an operation's tool
    #[arg(long, value_name = "ID=TEXT", value_parser = pair)]
    pub(crate) describe: Vec<Pair>,
    /// Sets a parameter, which models then do not see; a value that is not JSON is a text
    #[arg(long, value_name = "ID.PARAMETER=VALUE", value_parser = fix)]
    pub(crate) fix: Vec<Fix>,
    /// Declares that operations only read, whatever their methods
    #[arg(long, value_name = "PATH-OR-ID")]
    pub(crate) reads: Vec<String>,
    /// Runs equal calls of an operation once, if the second one comes within up to 120 seconds and has no id
    #[arg(long, value_name = "ID=SECONDS", value_parser = once)]
    pub(crate) once: Vec<(String, u64)>,
}

/// How the API is reached.
#[derive(Args)]
#[command(next_help_heading = "Servers and credentials")]
pub(crate) struct Access {
    /// The URL that paths are appended to
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Allows another host that the document names
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// Sets a variable of the document's server URLs
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) server_variable: Vec<Pair>,
    /// Names the secret of a security scheme
    #[arg(long, value_name = "SCHEME=SECRET_ID", value_parser = pair)]
    pub(crate) secret: Vec<Pair>,
    /// Sends a secret as a bearer token, whatever the document says
    #[arg(long, value_name = "SECRET_ID")]
    pub(crate) bearer: Option<String>,
    /// Chooses security schemes, among alternatives or where the document names none; `SCHEME:FLOW` also a flow
    #[arg(long, value_name = "SCHEME,…", value_delimiter = ',')]
    pub(crate) security: Vec<String>,
    /// Sends the call's id in a header, by which the API recognizes repeated requests
    #[arg(long, value_name = "NAME")]
    pub(crate) idempotency_header: Option<String>,
    /// Allows an API at a private address
    #[arg(long)]
    pub(crate) allow_private: bool,
}

/// The files to write.
#[derive(Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct Results {
    /// Writes the tools to a file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrites a file of tools that was edited
    #[arg(long)]
    pub(crate) force: bool,
    /// Makes a file of tools again with the options that made it, and says what has changed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["document", "output", "report"])]
    pub(crate) update: Option<PathBuf>,
    /// Writes what was left out, and what to look at, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// A name and its value.
pub(crate) type Pair = (String, String);

/// An operation, its parameter and the value.
pub(crate) type Fix = (String, String, Value);

fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write a name, `=` and a value".to_owned()),
    }
}

/// Reads `ID=SECONDS`.
fn once(text: &str) -> Result<(String, u64), String> {
    let (operation, seconds) = pair(text)?;
    let seconds = seconds.parse().map_err(|_| "write a number of seconds")?;
    Ok((operation, seconds))
}

/// Reads `ID.PARAMETER=VALUE`; ids may have dots, so the last one counts.
fn fix(text: &str) -> Result<Fix, String> {
    let (name, value) = pair(text)?;
    let parts = name.rsplit_once('.');
    let (operation, parameter) = parts.ok_or("write the operation, `.` and the parameter")?;
    let (operation, parameter) = (operation.to_owned(), parameter.to_owned());
    let value = serde_json::from_str(&value).unwrap_or_else(|_| value.into());
    Ok((operation, parameter, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fixed_values_are_json_or_text() {
        for (text, expected) in [
            ("users.list.limit=10", ("users.list", "limit", json!(10))),
            ("get.geometry=paths", ("get", "geometry", json!("paths"))),
            ("get.id=\"10\"", ("get", "id", json!("10"))),
            ("get.q=a=b", ("get", "q", json!("a=b"))),
        ] {
            let (operation, parameter, value) = fix(text).unwrap();
            assert_eq!((&*operation, &*parameter, value), expected);
        }
        assert!(["limit=10", "get.limit"].iter().all(|it| fix(it).is_err()));
    }

    #[test]
    fn only_tags_and_paths_keep_their_commas() {
        let text = "lambda-tools openapi a.yaml --include-tag A,B --include-path /f(a,b) --include-method get,head";
        let Command::Openapi(options) = Arguments::parse_from(text.split(' ')).command else {
            panic!("it is another subcommand");
        };
        let choice = options.conversion.choice;
        assert_eq!(choice.include_tag, ["A,B"]);
        assert_eq!(choice.include_path, ["/f(a,b)"]);
        assert_eq!(choice.include_method, ["get", "head"]);
    }
}
