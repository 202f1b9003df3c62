//! Addition, in three versions that coexist.

use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Returns the calculator's tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    let versions = [
        Tool::new("Calculator.Add@1.0.0", add),
        Tool::new("Calculator.Add@3.0.0", add_finite).description(
            "Adds two numbers together. Since 3.0.0 a sum too large to be represented is reported \
             as such, with advice.",
        ),
        Tool::new("Calculator.Add@10.0.0", add_exactly).description(
            "Adds two numbers together. Since 10.0.0 a sum that had to be rounded, of numbers \
             beyond 9007199254740992, is refused as well.",
        ),
    ];
    versions.map(Tool::idempotent).into()
}

/// Adds two numbers together.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number to add.
    a: f64,
    /// The second number to add.
    b: f64,
}

/// The sum of the two numbers.
#[derive(Debug, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
struct Sum(f64);

async fn add(input: Add) -> Result<Sum, Failure> {
    Ok(Sum(input.a + input.b))
}

async fn add_finite(input: Add) -> Result<Sum, Failure> {
    let sum = input.a + input.b;
    if sum.is_finite() {
        return Ok(Sum(sum));
    }
    Err(Failure::new("The sum is too large to be represented")
        .prompt("The sum must stay below 1.797e308; add smaller numbers."))
}

/// Adds two numbers together.
#[derive(Deserialize, JsonSchema)]
struct AddExactly {
    /// The first number to add.
    a: Number,
    /// The second number to add.
    b: Number,
}

async fn add_exactly(input: AddExactly) -> Result<Sum, Failure> {
    /// From this value on, neighbouring integers share one float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let AddExactly { a, b } = input;
    // Integers are added exactly: converted to floats, they might already be rounded.
    let whole = a.as_i128().zip(b.as_i128()).map(|(a, b)| a + b);
    let float = |number: &Number| number.as_f64().unwrap_or(f64::INFINITY);
    let (a, b) = (float(&a), float(&b));
    let Sum(sum) = add_finite(Add { a, b }).await?;
    match whole {
        #[expect(clippy::cast_precision_loss, reason = "floats have all of these")]
        Some(whole) if whole.unsigned_abs() <= 1 << 53 => return Ok(Sum(whole as f64)),
        None if [a, b, sum].iter().all(|number| number.abs() < EXACT) => return Ok(Sum(sum)),
        _ => {}
    }
    Err(Failure::new("The sum cannot be represented exactly")
        .prompt("The sum must lie between -9007199254740992 and 9007199254740992."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sum_that_would_be_rounded_is_refused() {
        const EXACT: Option<Sum> = Some(Sum(9_007_199_254_740_992.0));
        for (a, b, expected) in [
            ("0.5", "1", Some(Sum(1.5))),
            ("9007199254740991", "1", EXACT),
            ("9007199254740993", "-1", EXACT),
            ("9e15", "9e15", None),
            ("9007199254740992", "1", None),
            ("9007199254740992", "0.5", None),
            ("9007199254740993.0", "-1", None),
            ("-9007199254740992", "-1", None),
            ("18446744073709551615", "1", None),
        ] {
            let number = |text: &str| serde_json::from_str(text).unwrap();
            let input = AddExactly {
                a: number(a),
                b: number(b),
            };
            assert_eq!(add_exactly(input).await.ok(), expected, "{a} + {b}");
        }
        let large = Add { a: 9e15, b: 9e15 };
        assert_eq!(add_finite(large).await.ok(), Some(Sum(1.8e16)));
    }
}
