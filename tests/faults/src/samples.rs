//! Tools with every kind of input and output, and with hostile texts: what the explorer has to show.

// The markup in descriptions is deliberate.
#![allow(rustdoc::invalid_html_tags)]

use std::{collections::BTreeMap, time::Duration};

use lambda_tools::{Content, Context, Failure, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Places an order and returns it as the tool understood it.
#[derive(Deserialize, JsonSchema, Serialize)]
struct Order {
    /// The customer.
    customer: Customer,
    /// The articles; at least one.
    #[schemars(length(min = 1, max = 5))]
    lines: Vec<Line>,
    /// The way of delivery.
    delivery: Delivery,
    /// Pays now rather than on delivery.
    prepaid: bool,
    /// The urgency; normal by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    urgency: Option<Urgency>,
    /// A discount in percent.
    #[schemars(range(min = 0.0, max = 50.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    discount: Option<f64>,
    /// Labels of any name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// The person who gets the order as a gift.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<Customer>,
}

/// A person who orders.
#[derive(Deserialize, JsonSchema, Serialize)]
struct Customer {
    /// Their name.
    #[schemars(length(min = 1, max = 40))]
    name: String,
    /// Their number: two letters and four digits.
    #[schemars(regex(pattern = r"^[A-Z]{2}\d{4}$"))]
    number: String,
    /// Their account, a large integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<u64>,
}

/// One article.
#[derive(Deserialize, JsonSchema, Serialize)]
struct Line {
    /// The article's number.
    article: String,
    /// How many.
    #[schemars(range(min = 1, max = 99))]
    quantity: u32,
}

/// Where the order goes.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Delivery {
    /// The customer comes to a shop.
    Pickup {
        /// The shop.
        shop: String,
    },
    /// A parcel to an address.
    Parcel {
        /// The street and the number.
        street: String,
        /// The city.
        city: String,
    },
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum Urgency {
    Low,
    Normal,
    High,
}

async fn place(order: Order) -> Result<Order, Failure> {
    if order.customer.name == "Nobody" {
        return Err(Failure::new("The customer is unknown")
            .prompt("Ask for the customer's name.")
            .retry_after(Duration::from_millis(1500)));
    }
    Ok(order)
}

/// <img src=x onerror="window.hostile = 1"><script>window.hostile = 2</script> A tool with
/// &lt;markup&gt; in its description.
#[derive(Deserialize, JsonSchema)]
struct Hostile {
    /// "><svg onload="window.hostile = 3"> in a parameter's description.
    #[serde(rename = "__proto__")]
    #[serde(default)]
    prototype: String,
}

async fn hostile(input: Hostile) -> Result<BTreeMap<&'static str, String>, Failure> {
    if input.prototype == "fail" {
        return Err(Failure::new("<img src=x onerror=\"window.hostile = 4\">"));
    }
    let script = "</script><script>window.hostile = 5</script>".to_owned();
    let link = "<a href=\"javascript:window.hostile = 6\">x</a>".to_owned();
    Ok(BTreeMap::from([
        ("__proto__", input.prototype),
        ("script", script),
        ("link", link),
    ]))
}

/// Shows a picture.
#[derive(Deserialize, JsonSchema)]
struct Show {}

/// An image of one point.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\xdac\xd0\xcd\xb9\xff\x1f\0\x04\xba\x02xIh\xe7\x1e\0\0\0\0IEND\xaeB`\x82";

async fn show(_: Show) -> Result<Vec<Content>, Failure> {
    Ok(vec![
        Content::text("A picture of one point"),
        Content::bytes("image/png", PNG),
        Content::bytes("audio/wav", b"RIFF"),
        Content::bytes("application/pdf", b"%PDF-1.7"),
    ])
}

/// Deletes a file, if the user agrees.
#[derive(Deserialize, JsonSchema)]
struct Delete {
    /// The file's name.
    file: String,
}

/// The user's decision.
#[derive(Deserialize, JsonSchema)]
struct Decision {
    /// Really deletes the file.
    confirm: bool,
}

async fn delete(input: Delete, cx: Context) -> Result<String, Failure> {
    let question = format!("Delete {}?", input.file);
    let decision: Option<Decision> = cx.ask("confirm", &question)?;
    Ok(match decision {
        Some(Decision { confirm: true }) => format!("{} is deleted", input.file),
        _ => "Nothing was deleted".to_owned(),
    })
}

/// Returns all of these tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("Orders.Place@1.0.0", place),
        Tool::new("Orders.Place@2.0.0", place)
            .title("Place an order")
            .destructive(false)
            .run_at_most_once(),
        Tool::new("Hostile.Echo@1.0.0", hostile).read_only(true),
        Tool::new("Pictures.Show@1.0.0", show).idempotent(),
        Tool::new("Files.Delete@1.0.0", delete).destructive(true),
    ]
}
