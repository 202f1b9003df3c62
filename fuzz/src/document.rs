//! OpenAPI documents: an error, or tools whose operations are all made or named, and which the toolkit
//! and the reader of the file accept.

use lambda_tools::{
    Toolkit,
    from_openapi::{ApiTools, OpenApi, OpenApiOptions},
};

use crate::{MemoryBound, bounded};

/// References multiply what a document says, up to the limit of an input for each operation; each
/// input is compiled.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 64 * 1024,
    base: 64 << 20,
};

pub fn run(data: &[u8]) {
    let Ok(document) = serde_json::from_slice(data) else {
        return;
    };
    bounded(data.len(), BOUND, || check(document));
}

fn check(document: serde_json::Value) {
    let options = OpenApiOptions {
        list_all: true,
        base_url: Some("https://api.example".to_owned()),
        ..OpenApiOptions::all()
    };
    let Ok(reduction) = OpenApi::new(document, options).and_then(|api| api.reduce()) else {
        return;
    };
    let report = &reduction.report;
    let named = reduction.tools.ids().count() + report.left_out.len();
    assert_eq!(named, report.operations);
    let read =
        ApiTools::from_json(&reduction.tools.to_json()).expect("it reads what it has written");
    let toolkit =
        Toolkit::new(read.tools().expect("the URL is public")).expect("the ids are valid");
    toolkit.check().expect("the definitions are valid");
}
