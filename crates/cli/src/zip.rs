//! `lambda-tools zip`: a folder with what AWS Lambda runs, whose program is this executable.

mod elf;

use std::{env, fs, io, io::Write, path::Path, process::ExitCode};

use lambda_tools::{Toolkit, from_openapi::ApiTools};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    Error,
    args::Zip,
    output::{quoted, shown, typed, write},
    source,
};

const TEMPLATE: &str = include_str!("zip/template.yaml");

/// The version of the C library in Lambda's runtime `provided.al2023`.
const GLIBC_OF_LAMBDA: (u32, u32) = (2, 34);

/// Runs the command.
pub(crate) fn run(options: &Zip) -> Result<ExitCode, Error> {
    let (file, folder) = (&options.tools, &options.output);
    let text = source::read_file(file)?;
    let api = ApiTools::from_json(&text)?;
    // The function would fail at start-up with the same error.
    Toolkit::new(api.clone().tools()?)?.check()?;
    let executable = env::current_exe()?;
    let program = fs::read(&executable)?;
    check(&program, &options.architecture)?;
    fs::create_dir_all(folder)
        .map_err(|error| format!("{} cannot be created: {error}", folder.display()))?;
    let zip = zipped(&[
        ("bootstrap", &program, 0o755),
        ("tools.json", text.as_bytes(), 0o644),
    ])?;
    write(&folder.join("bootstrap"), &program)?;
    let permissions = fs::metadata(&executable)?.permissions();
    fs::set_permissions(folder.join("bootstrap"), permissions)?;
    write(&folder.join("tools.json"), text.as_bytes())?;
    write(&folder.join("function.zip"), &zip)?;
    let template = folder.join("template.yaml");
    if !template.exists() {
        let text = TEMPLATE.replace("x86_64", &options.architecture);
        write(&template, text.as_bytes())?;
    }
    for line in deployment(&api, folder, &options.architecture) {
        // Nobody may read it.
        _ = writeln!(io::stdout(), "{}", shown(&line));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a zip of files: their names, bytes and permissions. The same files make the same zip.
fn zipped(files: &[(&str, &[u8], u32)]) -> Result<Vec<u8>, Error> {
    let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, bytes, permissions) in files {
        let options = SimpleFileOptions::DEFAULT.unix_permissions(*permissions);
        zip.start_file(*name, options)?;
        zip.write_all(bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// Checks that Lambda can run this executable.
fn check(program: &[u8], architecture: &str) -> Result<(), Error> {
    let Some(needs) = elf::needs(program) else {
        return Err("this executable is not for Linux on x86_64 or arm64: use one that is".into());
    };
    let own = needs.architecture;
    if own != architecture {
        return Err(format!(
            "this executable is for {own}: use one for {architecture}, or a function with this processor\n  \
             {} --architecture {own}",
            typed()
        )
        .into());
    }
    if needs.glibc > GLIBC_OF_LAMBDA {
        let version = |(major, minor)| format!("{major}.{minor}");
        return Err(format!(
            "this executable needs GLIBC {}, and Lambda has {}: build one for Lambda in a clone, and use it\n  \
             cargo lambda build --release --package lambda_tools_cli",
            version(needs.glibc),
            version(GLIBC_OF_LAMBDA)
        )
        .into());
    }
    Ok(())
}

/// Returns the commands that deploy the folder, with SAM or without.
fn deployment(api: &ApiTools, folder: &Path, architecture: &str) -> Vec<String> {
    let name = stack_name(folder);
    let path = |file: &str| folder.join(file).display().to_string();
    let secrets = api.secrets().into_iter();
    let secrets = secrets.map(|id| {
        let id = quoted(&format!("{name}/{id}"));
        format!("  aws secretsmanager create-secret --name {id} --secret-string VALUE")
    });
    let mut lines = vec!["Deploy it, with a key that callers send:".to_owned()];
    lines.extend(secrets);
    let template = quoted(&path("template.yaml"));
    lines.push(format!(
        "  sam deploy --template-file {template} --stack-name {name} --resolve-s3 --capabilities CAPABILITY_IAM"
    ));
    lines.push(format!(
        "Or without SAM, with a role, a function URL and the secret {name}/TOOLS_API_KEY of your own:"
    ));
    let zip = quoted(&format!("fileb://{}", path("function.zip")));
    let variables =
        format!("TOOLS_AUTH=api-key,TOOLS_SECRETS=secrets-manager,TOOLS_SECRETS_PREFIX={name}/");
    lines.push(format!(
        "  aws lambda create-function --function-name {name} --runtime provided.al2023 --handler bootstrap \
         --architectures {architecture} --memory-size 256 --timeout 23 --role ROLE_ARN --zip-file {zip} \
         --environment 'Variables={{{variables}}}'"
    ));
    lines
}

/// Returns the name of a stack for a folder: a letter, then letters, digits and hyphens.
fn stack_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(|it: char| !it.is_ascii_alphanumeric(), "-");
    if name.starts_with(|it: char| it.is_ascii_alphabetic()) {
        name.chars().take(64).collect()
    } else {
        "tools".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::check;

    #[test]
    fn an_executable_has_to_run_on_lambda() {
        let (own, other) = match env::consts::ARCH {
            "aarch64" => ("arm64", "x86_64"),
            _ => ("x86_64", "arm64"),
        };
        let program = fs::read(env::current_exe().unwrap()).unwrap();
        let needed = b"GLIBC_2.34\0";
        let places = program.windows(needed.len()).enumerate();
        let places = places.filter(|(_, bytes)| bytes == needed);
        let places: Vec<_> = places.map(|(place, _)| place + 6).collect();
        let with_glibc = |version: &[u8; 4]| {
            let mut program = program.clone();
            for place in &places {
                program[*place..place + 4].copy_from_slice(version);
            }
            program
        };
        assert!(check(&program, own).is_ok());
        let of_own = format!("this executable is for {own}: ");
        let none = "is not for Linux on x86_64 or arm64";
        for (program, architecture, expected) in [
            (
                with_glibc(b"2.35"),
                own,
                "needs GLIBC 2.35, and Lambda has 2.34: ",
            ),
            (with_glibc(b"3.00"), own, "needs GLIBC 3.0, "),
            (program.clone(), other, &*of_own),
            (b"#!/bin/sh\n".to_vec(), own, none),
            (program[..80].to_vec(), own, none),
        ] {
            let error = check(&program, architecture).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
