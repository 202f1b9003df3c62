//! What a program prints instead of serving, before anything is deployed: the list of its tools for
//! one API, or its entry in a registry.

use std::{env, io, io::Write as _};

use super::settings::{self, InvalidSetting, undecided};
use crate::{
    Error, Server,
    protocol::{list_for, registry_entry},
};

/// The option that prints the list of tools: `--tools-for API`.
const TOOLS_FOR: &str = "--tools-for";

/// The option that prints the registry's entry: `--server-json NAME URL`, then maybe a description.
const SERVER_JSON: &str = "--server-json";

/// Prints what the program's arguments ask for. Returns false if they ask for nothing.
pub(super) fn print(server: &mut Server) -> Result<bool, Error> {
    let arguments = env::args_os().skip(1);
    let arguments = arguments.map(|it| it.to_string_lossy().into_owned());
    let arguments: Vec<_> = arguments.collect();
    let text = match arguments.first().map(String::as_str) {
        Some(TOOLS_FOR) => {
            let api = arguments.get(1).map_or("", String::as_str);
            let list = list_for(api, server.toolkit());
            list.map_err(|error| error.replace("'for'", TOOLS_FOR))?
        }
        Some(SERVER_JSON) => entry(server, &arguments[1..])
            .map_err(|error| InvalidSetting(format!("{SERVER_JSON}: {error}")))?,
        _ => return Ok(false),
    };
    // Unlike `println!`, this does not panic if nobody reads it.
    writeln!(io::stdout(), "{text}")?;
    Ok(true)
}

fn entry(server: &mut Server, arguments: &[String]) -> Result<String, Error> {
    let (name, url, description) = match arguments {
        [name, url] => (name, url, None),
        [name, url, description] => (name, url, Some(description)),
        _ => return Err("its arguments are a name, a URL and, if need be, a description".into()),
    };
    settings::apply(server)?;
    let auth = server.auth.as_ref();
    let auth = auth.ok_or_else(|| undecided("this server"))?;
    let description = description.map_or(server.info.about(), String::as_str);
    let entry = registry_entry(&server.info, auth, name, url, description)?;
    Ok(format!("{entry:#}"))
}
