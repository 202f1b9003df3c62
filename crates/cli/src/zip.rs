//! `lambda-tools zip`: a folder with what AWS Lambda runs, whose program is this executable.

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use lambda_tools::{Toolkit, from_openapi::ApiTools};
use object::{
    Endianness,
    elf::{self, FileHeader64},
    read::elf::FileHeader,
};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    Error,
    args::Zip,
    output::{print, quoted, typed, write},
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
        print(&line);
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
    let Some((own, glibc)) = needs(program) else {
        return Err("this executable is not for Linux on x86_64 or arm64: use one that is".into());
    };
    if own != architecture {
        return Err(format!(
            "this executable is for {own}: use one for {architecture}, or a function with this processor\n  \
             {} --architecture {own}",
            typed()
        )
        .into());
    }
    if glibc > GLIBC_OF_LAMBDA {
        let version = |(major, minor)| format!("{major}.{minor}");
        return Err(format!(
            "this executable needs GLIBC {}, and Lambda has {}: build one for Lambda in a clone, and use it\n  \
             cargo lambda build --release --package lambda_tools_cli",
            version(glibc),
            version(GLIBC_OF_LAMBDA)
        )
        .into());
    }
    Ok(())
}

/// Returns the processor, as Lambda names it, and the version of GLIBC that an executable needs, 0.0
/// without it. `None` if it is none for Linux on Lambda's processors.
fn needs(program: &[u8]) -> Option<(&'static str, (u32, u32))> {
    let header = FileHeader64::<Endianness>::parse(program).ok()?;
    let endian = header.endian().ok()?;
    let architecture = match header.e_machine(endian) {
        elf::EM_X86_64 => "x86_64",
        elf::EM_AARCH64 => "arm64",
        _ => return None,
    };
    let sections = header.sections(endian, program).ok()?;
    let mut glibc = (0, 0);
    if let Some((mut libraries, strings)) = sections.gnu_verneed(endian, program).ok()? {
        let strings = sections.strings(endian, program, strings).ok()?;
        while let Some((_, mut versions)) = libraries.next().ok()? {
            while let Some(needed) = versions.next().ok()? {
                let name = str::from_utf8(needed.name(endian, strings).ok()?).ok()?;
                // A weak version is used if it is there.
                let is_weak = needed.vna_flags.get(endian).contains(elf::VER_FLG_WEAK);
                let version = name.strip_prefix("GLIBC_").filter(|_| !is_weak);
                glibc = glibc.max(version.and_then(numbers).unwrap_or_default());
            }
        }
    }
    Some((architecture, glibc))
}

/// Returns the numbers of a version, which may have a third one.
fn numbers(version: &str) -> Option<(u32, u32)> {
    // Relative relocations in a short form, which 2.36 was the first to read.
    if version == "ABI_DT_RELR" {
        return Some((2, 36));
    }
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
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

    use super::{check, needs};

    #[test]
    fn an_executable_has_to_run_on_lambda() {
        let program = fs::read(env::current_exe().unwrap()).unwrap();
        let (own, _) = needs(&program).unwrap();
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
        let none = "is not for Linux on x86_64 or arm64";
        let newer = "needs GLIBC 2.35, and Lambda has 2.34: ";
        for (program, expected) in [
            (with_glibc(b"2.35"), newer),
            (with_glibc(b"3.00"), "needs GLIBC 3.0, "),
            (b"#!/bin/sh\n".to_vec(), none),
            (program[..80].to_vec(), none),
        ] {
            let error = check(&program, own).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
