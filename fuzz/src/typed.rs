//! Typed inputs: a call reaches its tool exactly if the published schema accepts its input, and the
//! tool gets the same values.
//!
//! The first byte of an input chooses the type, the rest is the input as JSON.

mod types;

use std::sync::LazyLock;

use jsonschema::{Draft, Validator};
use lambda_tools::{Failure, Tool, Toolkit, testing::LambdaFunction};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use types::{Enums, Flattened, Nested, Numbers, Texts};

use crate::{
    MemoryBound, bounded, depth,
    runtime::wait,
    schema::{self, Schema},
};

/// A value of JSON takes up to a few hundred bytes, and two bytes of text; the value exists as
/// text, as a value, as the type and as the response.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 2048,
    base: 8 << 20,
};

/// A tool, and what is known about its type.
struct Case {
    id: &'static str,
    schema: Schema,
    plain: Validator,
    decode: fn(Value) -> Result<Value, String>,
}

struct Target {
    function: LambdaFunction,
    cases: Vec<Case>,
}

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let (mut tools, mut cases) = (Vec::new(), Vec::new());
    add::<Numbers>("T.Numbers@1.0.0", &mut tools, &mut cases);
    add::<Enums>("T.Enums@1.0.0", &mut tools, &mut cases);
    add::<Nested>("T.Nested@1.0.0", &mut tools, &mut cases);
    add::<Flattened>("T.Flattened@1.0.0", &mut tools, &mut cases);
    add::<Texts>("T.Texts@1.0.0", &mut tools, &mut cases);
    let toolkit = Toolkit::new(tools).expect("the tools are valid");
    for definition in toolkit.definitions() {
        let schema = definition.input_schema;
        let case = cases
            .iter_mut()
            .find(|it| it.id == definition.id)
            .expect("a case");
        case.plain = plain(&schema);
        case.schema = Schema::new(schema).expect("the schema is valid");
    }
    let function = LambdaFunction::new(toolkit);
    Target { function, cases }
});

/// Returns a validator of draft 2020-12, of which derived schemas are.
fn plain(schema: &Value) -> Validator {
    schema::validator(schema, Draft::Draft202012).expect("the schema is valid")
}

fn add<T>(id: &'static str, tools: &mut Vec<Tool>, cases: &mut Vec<Case>)
where
    T: DeserializeOwned + JsonSchema + Serialize + Send + Sync + 'static,
{
    async fn echo<T: Serialize>(input: T) -> Result<Value, Failure> {
        Ok(serde_json::to_value(input)?)
    }
    tools.push(Tool::new(id, echo::<T>));
    cases.push(Case {
        id,
        schema: Schema::new(json!({})).expect("the schema is valid"),
        plain: plain(&json!({})),
        decode: |value| {
            let typed: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
            serde_json::to_value(typed).map_err(|error| error.to_string())
        },
    });
}

pub fn run(data: &[u8]) {
    let Some((case, json)) = data.split_first() else {
        return;
    };
    let Ok(input @ Value::Object(_)) = serde_json::from_slice::<Value>(json) else {
        return;
    };
    let target: &Target = &TARGET;
    let case = &target.cases[usize::from(*case) % target.cases.len()];
    bounded(data.len(), BOUND, || check(&target.function, case, &input));
}

fn check(function: &LambdaFunction, case: &Case, input: &Value) {
    let call = json!({"tool_id": case.id, "input": input}).to_string();
    let response = wait(function.invoke(&call)).expect("a call by itself has a response");
    if response["message"] == "The request cannot be understood" {
        // Nested too deeply.
        assert!(depth(input) > 60, "{response}");
        return;
    }
    // Models send `null` for what they leave out.
    let without_nulls = case.schema.without_optional_nulls(input.clone());
    let is_valid = case.plain.is_valid(&without_nulls);
    assert!(
        is_valid || !case.plain.is_valid(input),
        "{input} {without_nulls}"
    );
    let is_accepted = response["success"] == true;
    assert!(
        is_accepted
            || response["parameter_errors"]
                .as_object()
                .is_some_and(|it| !it.is_empty()),
        "{input} {response}"
    );
    let normalized = case.schema.check(&without_nulls).normalized;
    let decoded = (case.decode)(normalized);
    // Published schemas do not name the ranges of 32 and 64 bits; the type rejects such an integer.
    let is_too_wide = is_valid && decoded.is_err() && has_wide_integer(input);
    assert_eq!(
        is_accepted,
        is_valid && !is_too_wide,
        "{} {input} {response}",
        case.id
    );
    if is_accepted {
        let decoded = decoded.expect("the tool got the input");
        let value = &response["value"];
        assert!(
            is_same(value, &decoded),
            "{input}: {value} is not {decoded}"
        );
    }
}

/// Returns true if a value contains a number that 32 bits may not hold.
fn has_wide_integer(value: &Value) -> bool {
    /// 2^31.
    const LIMIT: f64 = 2_147_483_648.0;
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|it| it.abs() >= LIMIT),
        Value::Array(items) => items.iter().any(has_wide_integer),
        Value::Object(fields) => fields.values().any(has_wide_integer),
        _ => false,
    }
}

/// Returns true for equal values; a whole number is equal whether it is written as a float or not.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in = |name: &String, value: &Value| {
                b.get(name).is_some_and(|other| is_same(value, other))
            };
            a.len() == b.len() && a.iter().all(|(name, value)| is_in(name, value))
        }
        _ => one == other,
    }
}
