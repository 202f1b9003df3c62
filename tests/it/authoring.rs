//! The types and options of tool authors, and the definitions derived from them.

#![expect(dead_code, reason = "of most types, only the schema matters")]

use std::{collections::HashMap, time::Duration};

use lambda_tools::{Context, Failure, Tool, Toolkit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{call, errors_of, function, tool, value};

/// Books a trip.
#[derive(Deserialize, JsonSchema)]
struct Trip {
    /// The destination.
    to: String,
    /// The number of travellers.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 9))]
    travellers: u8,
    /// The travel class.
    class: Option<Class>,
    /// The person to contact.
    contact: Option<Contact>,
    /// Stops on the way.
    #[serde(default)]
    stops: Vec<Stop>,
    /// Anything else.
    #[serde(default)]
    notes: HashMap<String, String>,
    /// The payment method.
    payment: Payment,
    #[serde(flatten)]
    time: Time,
}

fn one() -> u8 {
    1
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Class {
    Economy,
    Business,
}

/// A person.
#[derive(Deserialize, JsonSchema)]
struct Contact {
    /// Full name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Stop {
    /// The stop's city.
    city: String,
    /// Nights there.
    nights: i64,
}

/// Pays.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "lowercase")]
enum Payment {
    Card {
        /// The card's token.
        token: String,
    },
    Invoice,
}

#[derive(Deserialize, JsonSchema)]
struct Time {
    /// The start of the trip.
    begins: String,
}

#[test]
fn a_type_becomes_a_short_closed_schema() {
    let toolkit = Toolkit::new([tool::<Trip>("Trips.Book@1.0.0")]).unwrap();
    let definition = &toolkit.definitions()[0];
    assert_eq!(definition.description, "Books a trip.");
    let closed = false;
    let expected = json!({
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "The destination."},
            "travellers": {"type": "integer", "description": "The number of travellers.",
                           "minimum": 1, "maximum": 9, "default": 1},
            "class": {"type": "string", "enum": ["economy", "business"],
                      "description": "The travel class."},
            "contact": {"type": "object", "description": "The person to contact.",
                        "properties": {"name": {"type": "string", "description": "Full name."}},
                        "required": ["name"], "additionalProperties": closed},
            "stops": {"type": "array", "description": "Stops on the way.",
                      "items": {"type": "object", "properties": {
                          "city": {"type": "string", "description": "The stop's city."},
                          "nights": {"type": "integer", "description": "Nights there."}},
                          "required": ["city", "nights"], "additionalProperties": closed}},
            "notes": {"type": "object", "description": "Anything else.", "default": {},
                      "additionalProperties": {"type": "string"}},
            "payment": {"description": "The payment method.", "oneOf": [
                {"type": "object", "properties": {
                    "by": {"type": "string", "const": "card"},
                    "token": {"type": "string", "description": "The card's token."}},
                    "required": ["by", "token"], "additionalProperties": closed},
                {"type": "object", "properties": {
                    "by": {"type": "string", "const": "invoice"}},
                    "required": ["by"], "additionalProperties": closed}]},
            "begins": {"type": "string", "description": "The start of the trip."},
        },
        "required": ["to", "payment", "begins"],
        "additionalProperties": closed,
    });
    let schema = &definition.input_schema;
    assert_eq!(*schema, expected, "{schema:#}");
    assert_eq!(definition.output_schema, Value::Null);
}

#[tokio::test]
async fn an_enum_of_objects_is_an_input_and_flattened_ones_share_one_object() {
    /// Pays in one of two ways, at one of two times.
    #[derive(Deserialize, JsonSchema)]
    struct PayLater {
        /// The amount.
        amount: u32,
        #[serde(flatten)]
        payment: Payment,
        #[serde(flatten)]
        due: Option<Due>,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "due", rename_all = "lowercase")]
    enum Due {
        Now,
        Later {
            /// The number of days until payment.
            days: u32,
        },
    }
    let unknown = json!({"by": "Must be one of: card, invoice"});
    for (input, errors) in [
        (json!({"by": "card", "token": "t"}), Value::Null),
        (json!({"by": "invoice"}), Value::Null),
        (json!({"by": "cash"}), unknown),
    ] {
        assert_eq!(errors_of::<Payment>(input).await, errors);
    }
    let invoice = json!({"amount": 1, "by": "invoice", "due": "later", "days": 3});
    assert_eq!(errors_of::<PayLater>(invoice).await, Value::Null);
    let (text, no_parameter) = ("Must be a string", "Is not a parameter");
    for (mut bad, parameter, expected) in [
        (json!({"by": "card", "token": 5}), "token", text),
        (json!({"by": "invoice", "tip": 2}), "tip", no_parameter),
        (json!({"by": "cash"}), "by", "Must be one of: card, invoice"),
    ] {
        bad["amount"] = json!(1);
        let errors = errors_of::<PayLater>(bad).await;
        let message = errors[parameter].as_str().unwrap();
        assert!(message.starts_with(expected), "{errors}");
        assert_eq!(errors.as_object().unwrap().len(), 1, "{errors}");
    }
}

#[test]
fn every_mistake_is_described_in_one_error() {
    #[derive(Deserialize, JsonSchema)]
    struct Bare {
        field: String,
        /// Inner ones.
        inner: Vec<Inner>,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Inner {
        deep: u8,
    }
    /// Contains itself.
    #[derive(Deserialize, JsonSchema)]
    struct Tree {
        /// Its branches.
        branches: Vec<Tree>,
    }
    /// Moves.
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "how")]
    enum Move {
        /// To a point, whose coordinates this does not describe.
        To { x: f64, y: f64 },
    }
    let dynamic = |id: &'static str, about: &'static str, output: Value| {
        let run = async |_: Value| Ok::<_, Failure>(Value::Null);
        Tool::dynamic(id, about, json!({"type": "object"}), output, run)
    };
    let error = Toolkit::new([
        // With an invalid id, all other mistakes are found too.
        tool::<Trip>("NoToolkit@1.0.0")
            .secret("K")
            .secret("K")
            .authorization("", ["s"]),
        tool::<Trip>("Trips.Book"),
        tool::<Trip>("Trips.Book@1.0.0"),
        tool::<Trip>("Trips.Book@1.0.0"),
        tool::<Trip>("Trips_Book.X@1.0.0").name("Trips_Book"),
        tool::<Bare>("T.Bare@1.0.0"),
        tool::<Tree>("T.Tree@1.0.0"),
        tool::<Move>("T.Move@1.0.0"),
        tool::<String>("T.Text@1.0.0").description("Takes text."),
        tool::<Trip>("T.Named@1.0.0").name("a name"),
        dynamic("T.Dynamic@1.0.0", "", json!({"type": "nonsense"})),
        tool::<Trip>("T.Zero@1.0.0").once_within(Duration::ZERO),
        tool::<Trip>("T.Long@1.0.0").once_within(Duration::from_millis(120_001)),
        tool::<Trip>("T.Longest@1.0.0").once_within(Duration::from_mins(2)),
        tool::<Trip>("T.Again@1.0.0")
            .once_within(Duration::from_mins(1))
            .idempotent(),
        tool::<Trip>("T.Later@1.0.0")
            .once_within(Duration::from_mins(1))
            .background(),
        tool::<Trip>("T.Nobody@1.0.0").allow([""; 0]),
        tool::<Trip>("T.Unknown@1.0.0").allow(["user:ada", "admins"]),
        dynamic("T.Ref@1.0.0", "Refers.", json!({"$ref": "#/x"})),
    ])
    .unwrap_err();
    let text = format!("{error:?}");
    for part in [
        "NoToolkit@1.0.0 (tests/it/authoring.rs:",
        "a tool is registered as Toolkit.Tool@1.0.0",
        "Trips.Book (tests/it/authoring.rs:",
        "already registered at tests/it/authoring.rs:",
        "Trips.Book@1.0.0 has the same name",
        "T.Bare@1.0.0",
        "it has no description",
        "these parameters have no description: field, inner[].deep",
        "these parameters have no description: x, y",
        "its input schema uses $ref",
        "its input is not an object",
        "its name must be 1 to 64",
        "its output schema is not a JSON Schema",
        "its output schema uses $ref",
        "T.Zero@1.0.0 (tests/it/authoring.rs:",
        "T.Long@1.0.0 (tests/it/authoring.rs:",
        ".once_within(…) takes up to 120 seconds",
        "T.Again@1.0.0 (tests/it/authoring.rs:",
        "T.Later@1.0.0 (tests/it/authoring.rs:",
        ".once_within(…) is not for tools that are idempotent, or in the background",
        "it is allowed to nobody",
        "it is allowed to 'admins', but a rule is group:NAME",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(error.problems().len(), 21, "{text}");
}

#[tokio::test]
async fn a_dynamic_tool_has_schemas_created_at_run_time() {
    // Neither closure names its type of errors.
    let seven = |_| async { Ok(json!(7)) };
    let echo = |input: Value, cx: Context| async move {
        let number = input["pair"][1].to_string().parse::<u8>()?;
        Ok(json!({"echo": input, "call": cx.call_id(), "number": number}))
    };
    let input = json!({
        "type": "object",
        "properties": {"pair": {"description": "A pair.", "prefixItems": [
            {"type": "string"}, {"type": "integer"}], "items": false}},
    });
    let tool = Tool::dynamic("Run.Time@1.0.0", "Echoes.", input.clone(), json!({}), echo);
    let object = json!({"type": "object"});
    let seven = Tool::dynamic("Run.Seven@1.0.0", "Is 7.", object, json!({}), seven);
    let toolkit = Toolkit::new([tool, seven]).unwrap();
    let definition = &toolkit.definitions()[0];
    assert_eq!(definition.input_schema, input);
    assert_eq!(definition.output_schema, json!({}));
    let function = function(toolkit);
    assert_eq!(value(&function, "Run.Seven", json!({})).await, 7);
    let pair = json!({"pair": ["a", 1.0], "more": null});
    let echoed = value(&function, "Run.Time", pair).await;
    assert_eq!(echoed["echo"], json!({"pair": ["a", 1], "more": null}));
    let response = call(&function, "Run.Time", json!({"pair": [1, 2, 3]})).await;
    let message = &response.body["parameter_errors"]["pair[0]"];
    assert_eq!(message, "Must be a string");
}

#[test]
fn outputs_of_every_type_have_a_schema() {
    #[derive(JsonSchema, Serialize)]
    struct Match {
        /// The name that matched.
        name: Option<String>,
        count: u64,
    }
    fn returning<O: JsonSchema + Serialize + Send + 'static>(id: &'static str) -> Tool {
        Tool::new(id, |_: Trip| async { Err::<O, _>(Failure::new("never")) })
    }
    let toolkit = Toolkit::new([
        returning::<Match>("T.Find@1.0.0"),
        returning::<Value>("T.Anything@1.0.0"),
        returning::<Vec<f32>>("T.List@1.0.0"),
    ]);
    let definitions = toolkit.unwrap().definitions().into_iter();
    let outputs: Vec<_> = definitions.map(|it| it.output_schema).collect();
    let of_match = json!({
        "type": "object",
        "properties": {
            "name": {"type": ["string", "null"], "description": "The name that matched."},
            "count": {"type": "integer", "minimum": 0},
        },
        "required": ["name", "count"],
    });
    let list = json!({"type": "array", "items": {"type": "number"}});
    assert_eq!(outputs, [of_match, json!({}), list]);
}
