//! Documents with mistakes: whatever they are, they are an error, or named, or harmless.
//!
//! `MUTATIONS` sets how many; a run in CI has a sample.

use lambda_tools_core::Toolkit;
use lambda_tools_openapi::OpenApi;
use serde_json::{Value, json};

use crate::documents::RealDocument;

/// A generator of numbers, which depend only on how many came before.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % count.max(1)
    }
}

/// Replaces a value somewhere in the document.
fn mutate(value: &mut Value, numbers: &mut Numbers) {
    let goes_on = numbers.below(12) != 0;
    match value {
        Value::Object(fields) if goes_on && !fields.is_empty() => {
            let at = numbers.below(fields.len());
            mutate(fields.values_mut().nth(at).unwrap(), numbers);
        }
        Value::Array(items) if goes_on && !items.is_empty() => {
            let at = numbers.below(items.len());
            mutate(&mut items[at], numbers);
        }
        value => {
            let others = [
                json!(null),
                json!(true),
                json!(-1),
                json!(1e300),
                json!(""),
                json!("é\u{0}{}[]%/../"),
                json!([]),
                json!([[{}]]),
                json!({}),
                json!({"$ref": "#/components/schemas"}),
                json!({"$ref": "#"}),
                json!({"$ref": "#/paths"}),
                json!({"$ref": "#/nowhere"}),
                json!({"allOf": [{"$ref": "#/components/schemas/User"}, {"type": ["null"]}]}),
                json!({"type": "array", "items": {"$ref": "#/components"}, "nullable": true}),
                json!({"oneOf": [{"const": 1}, {"enum": []}], "properties": {"": false}}),
            ];
            *value = others[numbers.below(others.len())].clone();
        }
    }
}

/// Returns the document with only some of its paths, so that most mutations meet what is read.
fn excerpt(document: &RealDocument, numbers: &mut Numbers) -> Value {
    let mut excerpt = document.document.clone();
    let paths = excerpt["paths"].as_object_mut().unwrap();
    let first = numbers.below(paths.len().saturating_sub(4));
    let kept: Vec<_> = paths.keys().skip(first).take(4).cloned().collect();
    paths.retain(|name, _| kept.contains(name));
    excerpt
}

#[test]
fn no_mistake_in_a_document_is_a_panic() {
    let count = std::env::var("MUTATIONS").map_or(400, |it| it.parse().unwrap());
    let all = RealDocument::all();
    let document = all.iter().find(|it| it.name == "figma").unwrap();
    let mut numbers = Numbers(7);
    let (mut made, mut left_out, mut refused) = (0, 0, 0);
    for _ in 0..count {
        let mut mutated = excerpt(document, &mut numbers);
        for _ in 0..=numbers.below(4) {
            let part = ["paths", "paths", "paths", "components"][numbers.below(4)];
            let is_part = numbers.below(10) != 0;
            match mutated.get_mut(part) {
                Some(part) if is_part => mutate(part, &mut numbers),
                _ => mutate(&mut mutated, &mut numbers),
            }
        }
        let reduction = OpenApi::new(mutated).and_then(|api| {
            api.include_all()
                .list_all()
                .base_url("https://a.example")
                .reduce()
        });
        match reduction {
            Ok(reduction) => {
                let report = &reduction.report;
                assert_eq!(
                    reduction.tools.len() + report.left_out.len(),
                    report.operations
                );
                made += reduction.tools.len();
                left_out += report.left_out.len();
                Toolkit::new(reduction.tools.tools().unwrap())
                    .unwrap()
                    .check()
                    .unwrap();
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    println!("{count} documents: {made} tools, {left_out} left out, {refused} documents refused");
    assert!(made > count && left_out > 0);
}
