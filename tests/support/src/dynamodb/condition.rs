//! Condition expressions: the part of their grammar that the library uses. Anything else is an
//! error, never a condition that is met.

use std::{iter::Peekable, vec::IntoIter};

use super::{
    error::ApiError,
    item::{Attribute, Item},
};

/// A condition on the current item.
#[derive(Debug)]
pub(super) enum Condition {
    /// `attribute_exists`, or `attribute_not_exists` for `false`.
    Exists(String, bool),
    Compare(Operand, Comparison, Operand),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

#[derive(Debug)]
pub(super) enum Operand {
    /// An attribute of the current item.
    Attribute(String),
    /// The name of an expression attribute value, with its colon.
    Value(String),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

type Tokens = Peekable<IntoIter<String>>;

impl Condition {
    /// Parses an expression.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut tokens = tokens(text)?.into_iter().peekable();
        let condition = or(&mut tokens)?;
        match tokens.next() {
            Some(token) => Err(unexpected(&token)),
            None => Ok(condition),
        }
    }

    /// Returns true if the current item, or its absence, meets the condition.
    pub(super) fn is_met(&self, item: Option<&Item>, values: &Item) -> bool {
        match self {
            Self::Exists(name, expected) => {
                item.is_some_and(|item| item.contains_key(name)) == *expected
            }
            Self::Compare(left, comparison, right) => {
                let value = |operand: &Operand| match operand {
                    Operand::Attribute(name) => item?.get(name).cloned(),
                    Operand::Value(name) => values.get(name).cloned(),
                };
                match (value(left), value(right)) {
                    (Some(left), Some(right)) => compare(&left, *comparison, &right),
                    // No comparison with an absent attribute is met.
                    _ => false,
                }
            }
            Self::And(left, right) => left.is_met(item, values) && right.is_met(item, values),
            Self::Or(left, right) => left.is_met(item, values) || right.is_met(item, values),
        }
    }
}

/// Compares two values. Values of different types are neither equal nor ordered, and flags have no
/// order.
fn compare(left: &Attribute, comparison: Comparison, right: &Attribute) -> bool {
    let order = match (left, right) {
        (Attribute::Text(left), Attribute::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Attribute::Number(left), Attribute::Number(right)) => left.cmp(right),
        (Attribute::Bytes(left), Attribute::Bytes(right)) => left.cmp(right),
        (Attribute::Flag(left), Attribute::Flag(right)) => {
            return matches!(comparison, Comparison::Equal) && left == right;
        }
        _ => return false,
    };
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

fn or(tokens: &mut Tokens) -> Result<Condition, ApiError> {
    let mut left = and(tokens)?;
    while tokens.next_if(|token| token == "OR").is_some() {
        left = Condition::Or(Box::new(left), Box::new(and(tokens)?));
    }
    Ok(left)
}

fn and(tokens: &mut Tokens) -> Result<Condition, ApiError> {
    let mut left = term(tokens)?;
    while tokens.next_if(|token| token == "AND").is_some() {
        left = Condition::And(Box::new(left), Box::new(term(tokens)?));
    }
    Ok(left)
}

fn term(tokens: &mut Tokens) -> Result<Condition, ApiError> {
    if tokens.next_if(|token| token == "(").is_some() {
        let inner = or(tokens)?;
        expect(tokens, ")")?;
        return Ok(inner);
    }
    for (function, exists) in [("attribute_exists", true), ("attribute_not_exists", false)] {
        if tokens.next_if(|token| token == function).is_some() {
            expect(tokens, "(")?;
            let Operand::Attribute(name) = operand(tokens)? else {
                return Err(unexpected("a value as the operand of a function"));
            };
            expect(tokens, ")")?;
            return Ok(Condition::Exists(name, exists));
        }
    }
    let left = operand(tokens)?;
    let comparison = match tokens.next().as_deref() {
        Some("=") => Comparison::Equal,
        Some("<") => Comparison::Less,
        Some("<=") => Comparison::LessOrEqual,
        Some(">") => Comparison::Greater,
        Some(">=") => Comparison::GreaterOrEqual,
        other => return Err(unexpected(other.unwrap_or("the end"))),
    };
    Ok(Condition::Compare(left, comparison, operand(tokens)?))
}

fn operand(tokens: &mut Tokens) -> Result<Operand, ApiError> {
    let token = tokens.next().unwrap_or_else(|| "the end".to_owned());
    let is_word = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    match token.strip_prefix(':') {
        Some(name) if is_word(name) => Ok(Operand::Value(token)),
        None if is_word(&token) => Ok(Operand::Attribute(token)),
        _ => Err(unexpected(&token)),
    }
}

fn expect(tokens: &mut Tokens, expected: &str) -> Result<(), ApiError> {
    match tokens.next() {
        Some(token) if token == expected => Ok(()),
        other => Err(unexpected(other.as_deref().unwrap_or("the end"))),
    }
}

fn unexpected(token: &str) -> ApiError {
    ApiError::unsupported(format!("'{token}' at its place in a condition"))
}

/// Splits a text into words with an optional colon, parentheses, and operators.
fn tokens(text: &str) -> Result<Vec<String>, ApiError> {
    let kind = |it: char| match it {
        ' ' => Some(0),
        '(' => Some(1),
        ')' => Some(2),
        '<' | '=' | '>' => Some(3),
        ':' | '_' => Some(4),
        it if it.is_ascii_alphanumeric() => Some(4),
        _ => None,
    };
    let mut tokens: Vec<(u8, String)> = Vec::new();
    for character in text.chars() {
        let kind = kind(character).ok_or_else(|| unexpected(&character.to_string()))?;
        match tokens.last_mut() {
            // A parenthesis is a token of its own.
            Some((last, token)) if *last == kind && kind > 2 => token.push(character),
            _ => tokens.push((kind, character.to_string())),
        }
    }
    let words = tokens.into_iter().filter(|(kind, _)| *kind != 0);
    Ok(words.map(|(_, token)| token).collect())
}
