//! A new project: a template of cargo-lambda, with the tools in it.
//!
//! The template is the same for all APIs. The tools answer its questions, such as those on secrets.

use std::{collections::BTreeSet, io::ErrorKind, path::Path, process::Command};

use lambda_tools_openapi::ApiTools;

use crate::{
    Error,
    args::{Pair, Project},
    output,
};

/// Generates the project, and writes the tools into it.
pub(crate) fn generate(
    name: &Path,
    project: &Project,
    document: &str,
    tools: &ApiTools,
) -> Result<(), Error> {
    // cargo-lambda would replace files of a project without a question.
    if name.exists() {
        return Err(format!("{} already exists", name.display()).into());
    }
    // The names of the template's parameters have no underscores.
    let secrets = tools.secrets();
    let names: BTreeSet<_> = secrets.iter().map(|it| it.replace('_', "")).collect();
    if names.len() < secrets.len() {
        let text = "the ids of two secrets differ only in underscores; name one with --secret";
        return Err(text.into());
    }
    // As `cargo lambda` runs it.
    let mut command = Command::new("cargo-lambda");
    command
        .args(["lambda", "new"])
        .arg(name)
        .arg("--no-interactive");
    if let Some(clone) = &project.clone {
        let template = clone.join("templates/openapi");
        command.arg("--template").arg(template);
        let path = seen_from(name, clone)?;
        command.args(["--render-var", &format!("lambda_tools={path}")]);
    }
    if let Some(template) = &project.template {
        command.args(["--template", template]);
    }
    for (variable, value) in variables(document, tools).iter().chain(&project.render_var) {
        command.args(["--render-var", &format!("{variable}={value}")]);
    }
    run(command)?;
    output::write(&name.join("tools.json"), &tools.to_json())
}

/// Returns the path of a folder as a project's manifest has it: relative, so that both can move
/// together, if the project is in the current folder.
fn seen_from(name: &Path, folder: &Path) -> Result<String, Error> {
    let absolute = folder
        .canonicalize()
        .map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    let is_here = name.components().count() == 1 && folder.is_relative();
    let path = if is_here {
        Path::new("..").join(folder)
    } else {
        absolute
    };
    Ok(path.display().to_string())
}

/// Returns what a template may ask about an API. It becomes source text and YAML, so nothing of it is
/// as the document has it: URLs and texts are in `tools.json` alone.
fn variables(document: &str, tools: &ApiTools) -> Vec<Pair> {
    let secrets = tools.secrets().join(",");
    let mut variables = vec![("openapi", document.to_owned()), ("api_secrets", secrets)];
    if let Some(provider) = tools.providers().into_iter().next() {
        variables.push(("oauth_provider", provider.id));
    }
    let variables = variables.into_iter();
    variables
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn run(mut command: Command) -> Result<(), Error> {
    let status = command.status().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            "cargo-lambda is not on PATH; https://www.cargo-lambda.info says how to install it"
                .to_owned()
        }
        _ => format!("cargo-lambda cannot be started: {error}"),
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cargo lambda new has failed: {status}").into())
    }
}
