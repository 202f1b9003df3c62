//! The types of fields that inputs have: the schema that is listed, and the error for a wrong value.

#![expect(dead_code, reason = "of most types, only the schema matters")]

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::Toolkit;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error};
use serde_json::{Value, json};

use crate::support::{errors_of, tool};

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
