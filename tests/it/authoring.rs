//! The types and options of tool authors, the definitions derived from them, and the errors for
//! values of other types.

#![expect(dead_code, reason = "of most types, only the schema matters")]

use std::collections::HashMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::{Context, Failure, Tool, Toolkit};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error},
};
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
    let invoice = json!({"by": "invoice", "due": "later", "days": 3});
    assert_eq!(errors_of::<PayLater>(invoice).await, Value::Null);
    for (bad, parameter, expected) in [
        (
            json!({"by": "card", "token": 5}),
            "token",
            "Must be a string",
        ),
        (
            json!({"by": "invoice", "tip": 2}),
            "tip",
            "Is not a parameter",
        ),
        (json!({"by": "cash"}), "by", "Must be one of: card, invoice"),
    ] {
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
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(error.problems().len(), 15, "{text}");
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

/// Takes one field.
#[derive(Deserialize, JsonSchema)]
struct Input<T> {
    /// The field.
    field: T,
}

/// Checks that the tool lists this schema for the property `field`, that it accepts one value, and
/// that it rejects the other with this message for this path.
async fn check<I: JsonSchema + DeserializeOwned + Send + 'static>(
    mut schema: Value,
    good: Value,
    bad: Value,
    (path, message): (&str, &str),
) {
    let toolkit = Toolkit::new([tool::<I>("T.T@1.0.0")]).unwrap();
    let listed = toolkit.definitions()[0].input_schema["properties"]["field"].take();
    schema["description"] = "The field.".into();
    assert_eq!(listed, schema);
    assert_eq!(errors_of::<I>(json!({"field": good})).await, Value::Null);
    let errors = errors_of::<I>(json!({"field": bad})).await;
    assert_eq!(errors, json!({path: message}), "{schema}");
}

/// Checks a text with a format; `not a value` is not one.
#[cfg(any(
    feature = "chrono",
    feature = "jiff",
    feature = "url",
    feature = "uuid"
))]
async fn check_format<T: JsonSchema + DeserializeOwned + Send + 'static>(
    format: &str,
    good: &str,
    message: &str,
) {
    let schema = json!({"type": "string", "format": format});
    let error = ("field", message);
    check::<Input<T>>(schema, json!(good), json!("not a value"), error).await;
    let schema = json!({"type": "array", "items": {"type": "string", "format": format}});
    let (good, bad) = (json!([good]), json!([good, "not a value"]));
    check::<Input<Vec<T>>>(schema, good, bad, ("field[1]", message)).await;
}

/// Takes a number. The schema neither requires it nor says how large it may be.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("required" = []))]
struct Vague {
    /// The field.
    #[schemars(schema_with = "any_integer")]
    field: u8,
}

fn any_integer(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer"})
}

/// Takes the field of a struct whose schema says too little.
#[derive(Deserialize, JsonSchema)]
struct FlattenedVague {
    #[serde(flatten)]
    inner: Vague,
}

/// Serde does not say which of the fields of a flattened struct has a wrong value.
#[tokio::test]
async fn the_error_of_a_flattened_field_says_what_is_known() {
    let large = || json!({"field": 300});
    let errors = errors_of::<Vague>(large()).await;
    let message = "Must be an integer between 0 and 255";
    assert_eq!(errors, json!({"field": message}));
    let message = "Has a value that must be an integer between 0 and 255";
    let errors = errors_of::<FlattenedVague>(large()).await;
    assert_eq!(errors, json!({"input": message}));
    let errors = errors_of::<Input<FlattenedVague>>(json!({"field": large()})).await;
    assert_eq!(errors, json!({"field": message}));
}

#[tokio::test]
async fn a_field_that_only_the_type_requires_is_named() {
    let required = |name: &str| json!({name: "Is required"});
    let empty = || json!({});
    assert_eq!(errors_of::<Vague>(empty()).await, required("field"));
    let errors = errors_of::<FlattenedVague>(empty()).await;
    assert_eq!(errors, required("field"));
    let nested = json!({"field": {}});
    let errors = errors_of::<Input<FlattenedVague>>(nested).await;
    assert_eq!(errors, required("field.field"));
}

/// An error of the type's own that looks like one of serde's, with a part of the value.
#[derive(Deserialize, JsonSchema)]
struct Quoting {
    /// The field.
    #[serde(deserialize_with = "quote")]
    field: String,
}

fn quote<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    Err(D::Error::custom(format!("missing field `{text}`")))
}

#[tokio::test]
async fn a_value_in_an_error_is_not_quoted() {
    let errors = errors_of::<Quoting>(json!({"field": "a-value"})).await;
    assert_eq!(errors, json!({"field": "Is not valid"}));
    let list = json!({"field": [{"field": "a-value"}]});
    let errors = errors_of::<Input<Vec<Quoting>>>(list).await;
    assert_eq!(errors, json!({"field[0].field": "Is not valid"}));
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map_err(D::Error::custom)
}

/// Takes bytes, as JSON Schema describes them.
#[derive(Deserialize, JsonSchema)]
struct Encoded {
    /// The field.
    #[serde(deserialize_with = "from_base64")]
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    field: Vec<u8>,
}

/// Takes bytes, as `OpenAPI` 3.0 describes them.
#[derive(Deserialize, JsonSchema)]
struct Formatted {
    /// The field.
    #[serde(deserialize_with = "from_base64")]
    #[schemars(with = "String", extend("format" = "byte"))]
    field: Vec<u8>,
}

#[tokio::test]
async fn bytes_are_base64() {
    let error = ("field", "Must be encoded in base64");
    let schema = json!({"type": "string", "contentEncoding": "base64"});
    check::<Encoded>(schema, json!("aGk="), json!("a value"), error).await;
    let schema = json!({"type": "string", "format": "byte"});
    check::<Formatted>(schema, json!("aGk="), json!("a value"), error).await;
    // Without an encoding, bytes are an array of numbers.
    let items = json!({"type": "integer", "minimum": 0, "maximum": 255});
    let schema = json!({"type": "array", "items": items});
    let error = ("field", "Must be an array");
    check::<Input<Vec<u8>>>(schema, json!([104, 105]), json!("aGk="), error).await;
}

#[cfg(any(feature = "chrono", feature = "jiff"))]
mod times {
    pub(super) const DATE: &str = "Must be a valid date, such as 2023-10-05";
    pub(super) const DATE_TIME: &str = "Must be a valid date-time, such as 2023-10-05T12:00:00Z";
    pub(super) const LOCAL: &str =
        "Must be a date and time without an offset, such as 2023-10-05T12:00:00";
    pub(super) const TIME: &str = "Must be a time without an offset, such as 12:00:00";
}

#[cfg(feature = "chrono")]
#[tokio::test]
async fn the_types_of_chrono_have_formats() {
    use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Utc, Weekday};
    use times::{DATE, DATE_TIME, LOCAL, TIME};

    check_format::<NaiveDate>("date", "2023-10-05", DATE).await;
    check_format::<DateTime<Utc>>("date-time", "2023-10-05T12:00:00Z", DATE_TIME).await;
    let with_offset = "2023-10-05T12:00:00-04:00";
    check_format::<DateTime<FixedOffset>>("date-time", with_offset, DATE_TIME).await;
    check_format::<NaiveDateTime>("partial-date-time", "2023-10-05T12:00:00", LOCAL).await;
    check_format::<NaiveTime>("partial-time", "12:00:00", TIME).await;
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let schema = json!({"type": "string", "enum": days});
    let error = ("field", "Must be one of: Mon, Tue, Wed, Thu, Fri, Sat, Sun");
    check::<Input<Weekday>>(schema, json!("Thu"), json!("Someday"), error).await;
}

#[cfg(feature = "jiff")]
#[tokio::test]
async fn the_types_of_jiff_have_formats() {
    use jiff::{SignedDuration, Span, Timestamp, Zoned, civil};
    use times::{DATE, DATE_TIME, LOCAL, TIME};

    const DURATION: &str = "Must be a valid duration, such as PT1H30M";
    check_format::<Timestamp>("date-time", "2023-10-05T12:00:00Z", DATE_TIME).await;
    check_format::<civil::Date>("date", "2023-10-05", DATE).await;
    check_format::<civil::DateTime>("partial-date-time", "2023-10-05T12:00:00", LOCAL).await;
    check_format::<civil::Time>("partial-time", "12:00:00", TIME).await;
    check_format::<SignedDuration>("duration", "PT1H30M", DURATION).await;
    check_format::<Span>("duration", "P1Y", DURATION).await;
    let zoned = "Must be a date and time with a time zone, such as \
                 2023-10-05T12:00:00-04:00[America/New_York]";
    let good = "2023-10-05T12:00:00-04:00[-04:00]";
    check_format::<Zoned>("zoned-date-time", good, zoned).await;
}

#[cfg(feature = "url")]
#[tokio::test]
async fn a_url_has_a_format() {
    let message = "Must be a valid uri, such as https://example.com/page";
    check_format::<url::Url>("uri", "https://example.com/?q=1", message).await;
}

#[cfg(feature = "uuid")]
#[tokio::test]
async fn a_uuid_has_a_format() {
    let message = "Must be a valid uuid, such as 123e4567-e89b-12d3-a456-426614174000";
    let good = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    check_format::<uuid::Uuid>("uuid", good, message).await;
}
