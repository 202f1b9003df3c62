//! The output of a program that does not serve, such as its list of tools for `AgentCore`.

use std::{env, io, io::Write as _};

use serde_json::Value;

use super::settings::InvalidSetting;
use crate::{Error, Server, text::closest, tool::agentcore};

/// The option that prints the list of tools: `--tools-for agentcore`.
const TOOLS_FOR: &str = "--tools-for";

const HELP: &str = "\
Serves tools: on AWS Lambda, or else over HTTP. Settings are environment variables.

--tools-for agentcore  prints the list of tools for an AgentCore Gateway
--version              prints the title and the version
--help                 prints this text";

/// Prints what the program's arguments ask for. Returns false if they ask for nothing. Unknown ones
/// are errors, unless the program may have arguments of its own.
pub(super) fn print(server: &Server, may_have_own: bool) -> Result<bool, Error> {
    let arguments = env::args_os().skip(1);
    let arguments = arguments.map(|it| it.to_string_lossy().into_owned());
    let arguments: Vec<_> = arguments.collect();
    let text = match arguments.first().map(String::as_str) {
        Some(TOOLS_FOR) => {
            if arguments.get(1).is_none_or(|it| it != "agentcore") {
                return Err(format!("{TOOLS_FOR} must be agentcore.").into());
            }
            let list = agentcore::definitions(server.toolkit());
            format!("{:#}", Value::from(list))
        }
        Some("--help" | "-h") => HELP.to_owned(),
        Some("--version" | "-V") => format!("{} {}", server.info.title(), server.info.version()),
        Some(unknown) if !may_have_own => {
            let options = ["--help", "--version", TOOLS_FOR];
            let meant = closest(unknown, options.into_iter());
            let end = meant.map_or_else(String::new, |it| format!("; did you mean {it}?"));
            let text = format!("the program has no such argument{end}\n\n{HELP}");
            return Err(InvalidSetting(text).into());
        }
        _ => return Ok(false),
    };
    // Unlike `println!`, this does not panic if nobody reads it.
    writeln!(io::stdout(), "{text}")?;
    Ok(true)
}
