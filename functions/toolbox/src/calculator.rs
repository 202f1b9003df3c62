//! Arithmetic, in three versions that live side by side.

use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The calculator's tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    let versions = [
        Tool::new("Calculator.Add@1.0.0", add),
        Tool::new("Calculator.Add@2.0.0", add_finite).description(
            "Adds two numbers together. Since 2.0.0 a sum too large to be represented is reported \
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

async fn add_exactly(input: Add) -> Result<Sum, Failure> {
    /// From here on neighbouring whole numbers share one representation.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let Sum(sum) = add_finite(input).await?;
    if sum.abs() <= EXACT {
        return Ok(Sum(sum));
    }
    Err(Failure::new("The sum cannot be represented exactly")
        .prompt("The sum must lie between -9007199254740992 and 9007199254740992."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_versions_differ_where_a_sum_cannot_be_right() {
        let huge = || Add {
            a: f64::MAX,
            b: f64::MAX,
        };
        let large = || Add { a: 9e15, b: 9e15 };
        assert_eq!(add_finite(large()).await.unwrap(), Sum(1.8e16));
        assert!(add_finite(huge()).await.is_err());
        assert!(add_exactly(large()).await.is_err());
        assert_eq!(add_exactly(Add { a: 0.5, b: 1.0 }).await.unwrap(), Sum(1.5));
    }
}
