//! The list of tools for one API, printed in place of serving: for deployments, before anything is
//! deployed.

use std::{env, io, io::Write as _};

use crate::{Error, Toolkit, protocol::list_for};

/// The only arguments that this library reads: `--tools-for API`.
const OPTION: &str = "--tools-for";

/// Prints the list that the program's arguments ask for. Returns false if they ask for none.
pub(super) fn print_list(toolkit: &Toolkit) -> Result<bool, Error> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_none_or(|it| it != OPTION) {
        return Ok(false);
    }
    let api = arguments.next().unwrap_or_default();
    let list = list_for(&api.to_string_lossy(), toolkit);
    let list = list.map_err(|error| error.replace("'for'", OPTION))?;
    // Its reader may have left.
    writeln!(io::stdout(), "{list}")?;
    Ok(true)
}
