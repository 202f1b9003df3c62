//! Small documents, each with a mistake that a conversion could make: `tests/cases/KIND/NAME.json`.
//!
//! The field `x-case` of a document says in words what is right, and as data: the options of the
//! command (`flags`), the call, the API's answer and the values of secrets (`env`), and what to
//! `expect` of the report, the tools, the request, the answer or the failure.

use std::{
    fs,
    path::{Path, PathBuf},
};

use axum::response::Response;
use lambda_tools_core::{Failure, testing};
use lambda_tools_openapi::{OpenApi, OpenApiOptions, Reduction};
use serde_json::{Value, json};
use test_support::repository;

use crate::recorder::{Recorder, call, toolkit};

/// Returns what differs from what is expected.
async fn judged(case: &Value, document: Value) -> Vec<String> {
    let expected = case["expect"].as_object().unwrap();
    let listed = |name: &str| {
        let texts = case["expect"][name].as_array().into_iter().flatten();
        texts.map(|it| it.as_str().unwrap()).collect::<Vec<_>>()
    };
    let mut faults = Vec::new();
    let mut lacks = |all: &[&str], text: &str| {
        let missing = all.iter().filter(|it| !text.contains(**it));
        faults.extend(missing.map(|it| format!("no {it:?} in {text}")));
    };
    let reduced = OpenApi::new(document, options_of(case)).and_then(|api| api.reduce());
    let Reduction { tools, report, .. } = match reduced {
        Ok(it) => it,
        Err(error) if expected.contains_key("error") => {
            lacks(&listed("error"), &error.to_string());
            return faults;
        }
        Err(error) => return vec![error.to_string()],
    };
    let file: Value = serde_json::from_str(&tools.to_json()).unwrap();
    let tool = &file["tools"][0];
    lacks(&listed("says"), &tool.to_string());
    lacks(&listed("notes"), &format!("{:?}", report.notes));
    lacks(&listed("left_out"), &format!("{:?}", report.left_out));
    for (place, whole) in [("tool", tool), ("file", &file)] {
        for (pointer, value) in case["expect"][place].as_object().into_iter().flatten() {
            if whole.pointer(pointer) != Some(value) {
                faults.push(format!("{pointer} is not {value} in {whole}"));
            }
        }
    }
    for pointer in listed("absent") {
        faults.extend(tool.pointer(pointer).map(|it| format!("{pointer} is {it}")));
    }
    let tools_in_file = file["tools"].as_array().unwrap().iter();
    let ids: Vec<_> = tools_in_file.map(|it| &it["id"]).collect();
    if expected.contains_key("ids") && json!(ids) != case["expect"]["ids"] {
        faults.push(format!("the ids are {ids:?}"));
    }
    if expected.contains_key("error") {
        faults.push("there is no error".to_owned());
    }
    if !case["call"].is_object() {
        return faults;
    }
    let answer = case["answer"].clone();
    let api = Recorder::answering(move |_| response_of(&answer)).await;
    let mut cx = testing::context().user_id("ada");
    for id in tools.secrets() {
        let value = case["env"][&id].as_str();
        cx = cx.secret(id, value.unwrap_or("user:secret-value"));
    }
    let toolkit = toolkit(tools, &api.url);
    let (entry, input) = (&toolkit.entries()[0], case["call"].clone());
    let outcome = match entry.tool.input.check(&input, "input").unwrap() {
        Ok(()) => call(entry, input, &cx.build()).await,
        Err(errors) => Err(Failure::new(format!("{errors:?}"))),
    };
    let requests = api.take();
    if expected.contains_key("refused") {
        let error = outcome.err().map(|it| it.message().to_owned());
        let error = error.unwrap_or_default();
        if !requests.is_empty() || !listed("refused").iter().all(|it| error.contains(it)) {
            faults.push(format!("it is not refused: {error} {requests:?}"));
        }
        return faults;
    }
    if let Some(wanted) = expected.get("failure") {
        faults.extend(differences(wanted, outcome.as_ref().err()));
        return faults;
    }
    let ([request], Ok(answer)) = (&*requests, &outcome) else {
        return vec![format!("{outcome:?} {requests:?}")];
    };
    let body = String::from_utf8_lossy(&request.body);
    let mut is = |name: &str, seen: Value| {
        if let Some(wanted) = expected.get(name).filter(|it| **it != seen) {
            faults.push(format!("{name} is {seen}, not {wanted}"));
        }
    };
    is("target", request.target.as_str().into());
    is("body", (&*body).into());
    is("answer", answer.clone());
    for (name, value) in case["expect"]["headers"].as_object().into_iter().flatten() {
        if request.header(name) != value.as_str() {
            faults.push(format!("{name} is {:?}, not {value}", request.header(name)));
        }
    }
    let missing = listed("body_has").into_iter();
    let missing = missing.filter(|it| !body.contains(it));
    faults.extend(missing.map(|it| format!("no {it:?} in {body:?}")));
    faults
}

/// Returns what differs from an expected failure.
fn differences(wanted: &Value, failure: Option<&Failure>) -> Vec<String> {
    let seen = failure.map_or(Value::Null, |failure| {
        let parts = failure.parts();
        json!({
            "message": failure.message(),
            "can_retry": failure.can_retry(),
            "retry_after": parts.retry_after.map(|it| it.as_secs()),
            "says": parts.additional_prompt_content,
        })
    });
    let mut differences = Vec::new();
    for (name, wanted) in wanted.as_object().unwrap() {
        let seen = &seen[name];
        let is_right = match (name.as_str(), seen.as_str()) {
            // A part of it.
            ("says", Some(text)) => text.contains(wanted.as_str().unwrap()),
            _ => seen == wanted,
        };
        if !is_right {
            differences.push(format!("{name} is {seen}, not {wanted}"));
        }
    }
    differences
}

/// Returns the options of a case; its document has one operation, or all are chosen.
fn options_of(case: &Value) -> OpenApiOptions {
    let flags = case["flags"].as_array().cloned().unwrap_or_default();
    let flags: Vec<_> = flags.iter().map(|it| it.as_str().unwrap()).collect();
    let mut options = OpenApiOptions::all();
    if let Some(id) = case["choose"].as_str() {
        options.include_paths.clear();
        options.include_operations.push(id.to_owned());
    }
    let mut flags = flags.into_iter();
    while let Some(flag) = flags.next() {
        if flag == "--all" {
            continue;
        }
        let value = flags.next().unwrap().to_owned();
        let (name, text) = value.split_once('=').unwrap_or((&value, ""));
        let pair = (name.to_owned(), text.to_owned());
        match flag {
            "--server-variable" => options.server_variables.extend([pair]),
            "--secret" => options.secrets.extend([pair]),
            "--rename" => options.rename.extend([pair]),
            "--fix" => {
                let (operation, parameter) = name.split_once('.').unwrap();
                let fixed = options.fix.entry(operation.to_owned()).or_default();
                fixed.insert(parameter.to_owned(), text.into());
            }
            "--security" => {
                let (scheme, flow) = value.split_once(':').unzip();
                let scheme = scheme.unwrap_or(&value).to_owned();
                options.security.insert(scheme, flow.map(str::to_owned));
            }
            "--include-method" => options.include_methods.push(value),
            "--host" => options.hosts.push(value),
            "--bearer" => options.bearer = Some(value),
            "--base-url" => options.base_url = Some(value),
            "--document-url" => options.document_url = Some(value),
            "--include-tag" => options.include_tags.push(value),
            "--idempotency-header" => options.idempotency_header = Some(value),
            other => panic!("{other}"),
        }
    }
    options
}

fn response_of(answer: &Value) -> Response {
    let status = answer["status"].as_u64().unwrap_or(200);
    let mut response = Response::builder().status(u16::try_from(status).unwrap());
    let usual = json!({"content-type": "application/json"});
    let headers = answer["headers"].as_object().or(usual.as_object());
    for (name, value) in headers.into_iter().flatten() {
        response = response.header(name, value.as_str().unwrap());
    }
    let bytes = match answer["body_hex"].as_str() {
        Some(digits) => (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
            .collect(),
        None => answer["body"].as_str().unwrap_or("{}").as_bytes().to_vec(),
    };
    response.body(bytes.into()).unwrap()
}

/// Returns the files and folders of a folder, in order.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|it| it.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn each_case_is_right() {
    let folder = repository("crates/openapi/tests/cases");
    let kinds = in_folder(&folder);
    let files: Vec<_> = kinds.iter().flat_map(|it| in_folder(it)).collect();
    assert!(files.len() >= 54, "{}", files.len());
    let mut failed = Vec::new();
    for file in files {
        let mut document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let case = document.as_object_mut().unwrap().remove("x-case").unwrap();
        let name = file.strip_prefix(&folder).unwrap().display();
        let faults = judged(&case, document).await;
        failed.extend(faults.into_iter().map(|it| format!("{name}: {it}\n")));
    }
    assert!(failed.is_empty(), "{}", failed.concat());
}
