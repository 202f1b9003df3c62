//! Combinations of values in which every pair of values occurs.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// A parameter's name, and its values.
pub(super) type Choice<'a> = (&'a str, Vec<&'a str>);

/// Some parameters with their values.
pub(super) type Combination<'a> = Vec<(&'a str, &'a str)>;

/// A rule for values.
pub(super) enum Rule<'a> {
    /// A parameter has a value.
    Is(&'a str, &'a str),
    Not(Box<Rule<'a>>),
    All(Vec<Rule<'a>>),
    Any(Vec<Rule<'a>>),
}

/// A parameter and its value, as positions in the list of choices.
type Item = (usize, usize);

/// The position of each parameter's value; `None` if it has none yet.
type Row = Vec<Option<usize>>;

/// Parameters, and a rule for their values.
pub(super) struct Pairs<'a> {
    choices: &'a [Choice<'a>],
    positions: BTreeMap<&'a str, usize>,
    rule: Rule<'a>,
    /// The parameters that the rule reads.
    ruled: BTreeSet<usize>,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(choices: &'a [Choice<'a>], rule: Rule<'a>) -> Self {
        let positions = choices
            .iter()
            .enumerate()
            .map(|(position, it)| (it.0, position));
        let mut pairs = Self {
            choices,
            positions: positions.collect(),
            rule,
            ruled: BTreeSet::new(),
        };
        let mut ruled = BTreeSet::new();
        pairs.rule.collect_names(&mut ruled);
        pairs.ruled = ruled
            .into_iter()
            .map(|name| pairs.positions[name])
            .collect();
        pairs
    }

    /// Returns combinations that the rule accepts, in which every pair occurs that it accepts.
    pub(super) fn combinations(&self) -> Vec<Combination<'a>> {
        let mut missing = self.all_pairs();
        let mut rows = Vec::new();
        while let Some(pair) = missing.pop_first() {
            let mut row = self.with(pair);
            if !self.is_possible(&mut row.clone()) {
                continue;
            }
            for shift in 0..self.choices.len() {
                let parameter = (rows.len() + shift) % self.choices.len();
                if row[parameter].is_none() {
                    self.choose(&mut row, parameter, &missing);
                }
            }
            for pair in pairs_in(&row) {
                missing.remove(&pair);
            }
            rows.push(self.values(&row));
        }
        rows
    }

    /// Returns the pairs that no combination has, although the rule accepts them.
    pub(super) fn missing_in(&self, rows: &[Combination<'_>]) -> Vec<String> {
        let mut missing = self.all_pairs();
        for combination in rows {
            let mut row = vec![None; self.choices.len()];
            for (name, value) in combination {
                if let Some(parameter) = self.positions.get(name) {
                    let values = &self.choices[*parameter].1;
                    row[*parameter] = values.iter().position(|it| it == value);
                }
            }
            for pair in pairs_in(&row) {
                missing.remove(&pair);
            }
        }
        missing.retain(|pair| self.is_possible(&mut self.with(*pair)));
        missing
            .iter()
            .map(|pair| format!("{:?}", self.values(&self.with(*pair))))
            .collect()
    }

    fn all_pairs(&self) -> BTreeSet<(Item, Item)> {
        let of = |it: usize| (0..self.choices[it].1.len()).map(move |value| (it, value));
        let items: Vec<_> = (0..self.choices.len()).flat_map(of).collect();
        let pairs = items
            .iter()
            .flat_map(|one| items.iter().map(move |other| (*one, *other)));
        pairs.filter(|(one, other)| one.0 < other.0).collect()
    }

    fn with(&self, (one, other): (Item, Item)) -> Row {
        let mut row = vec![None; self.choices.len()];
        (row[one.0], row[other.0]) = (Some(one.1), Some(other.1));
        row
    }

    /// Sets a parameter to the possible value with which the row has the most missing pairs.
    fn choose(&self, row: &mut Row, parameter: usize, missing: &BTreeSet<(Item, Item)>) {
        let gain = |value: usize| {
            let items = row
                .iter()
                .enumerate()
                .filter_map(|(it, value)| Some((it, (*value)?)));
            let item = (parameter, value);
            let pairs = items.map(|it| if it < item { (it, item) } else { (item, it) });
            pairs.filter(|pair| missing.contains(pair)).count()
        };
        let mut values: Vec<_> = (0..self.choices[parameter].1.len()).collect();
        values.sort_by_cached_key(|value| Reverse(gain(*value)));
        let is_possible = |value: &usize| {
            let mut row = row.clone();
            row[parameter] = Some(*value);
            !self.ruled.contains(&parameter) || self.is_possible(&mut row)
        };
        let chosen = values.into_iter().find(is_possible);
        row[parameter] = Some(chosen.expect("the row was possible"));
    }

    /// Returns true if the rule accepts the row with some values for the parameters without one.
    fn is_possible(&self, row: &mut Row) -> bool {
        if let Some(decided) = self.decide(&self.rule, row) {
            return decided;
        }
        let open = self.ruled.iter().find(|it| row[**it].is_none());
        let open = *open.expect("the rule reads only these parameters");
        let is_possible = (0..self.choices[open].1.len()).any(|value| {
            row[open] = Some(value);
            self.is_possible(row)
        });
        row[open] = None;
        is_possible
    }

    /// Returns whether the rule accepts a row, or `None` if the parameters without a value decide.
    fn decide(&self, rule: &Rule<'_>, row: &Row) -> Option<bool> {
        match rule {
            Rule::Is(name, value) => {
                let parameter = self.positions[name];
                Some(self.choices[parameter].1[row[parameter]?] == *value)
            }
            Rule::Not(rule) => self.decide(rule, row).map(|it| !it),
            Rule::All(rules) => self.first(rules, row, false),
            Rule::Any(rules) => self.first(rules, row, true),
        }
    }

    /// Returns a value if a rule has it, and otherwise the other one.
    fn first(&self, rules: &[Rule<'_>], row: &Row, value: bool) -> Option<bool> {
        let mut result = Some(!value);
        for rule in rules {
            match self.decide(rule, row) {
                Some(it) if it == value => return Some(value),
                Some(_) => {}
                None => result = None,
            }
        }
        result
    }

    fn values(&self, row: &Row) -> Combination<'a> {
        let named = row.iter().zip(self.choices);
        let named = named.filter_map(|(value, (name, values))| Some((*name, values[(*value)?])));
        named.collect()
    }
}

impl<'a> Rule<'a> {
    fn collect_names(&self, names: &mut BTreeSet<&'a str>) {
        match self {
            Self::Is(name, _) => _ = names.insert(name),
            Self::Not(rule) => rule.collect_names(names),
            Self::All(rules) | Self::Any(rules) => {
                for rule in rules {
                    rule.collect_names(names);
                }
            }
        }
    }
}

fn pairs_in(row: &Row) -> Vec<(Item, Item)> {
    let items = row
        .iter()
        .enumerate()
        .filter_map(|(it, value)| Some((it, (*value)?)));
    let items: Vec<_> = items.collect();
    let pairs = items
        .iter()
        .flat_map(|one| items.iter().map(move |other| (*one, *other)));
    pairs.filter(|(one, other)| one < other).collect()
}

#[test]
fn every_possible_pair_occurs() {
    fn has(row: &Combination<'_>, name: &str, value: &str) -> bool {
        row.contains(&(name, value))
    }
    let choices = [
        ("a", vec!["0", "1"]),
        ("b", vec!["0", "1"]),
        ("c", vec!["0", "1", "2"]),
        ("d", vec!["0", "1", "2", "3"]),
    ];
    // With `a=1`, `b=1` is required; `c=2` is never accepted.
    let not = |name, value| Rule::Not(Box::new(Rule::Is(name, value)));
    let rule = Rule::All(vec![
        Rule::Any(vec![not("a", "1"), Rule::Is("b", "1")]),
        not("c", "2"),
    ]);
    let pairs = Pairs::new(&choices, rule);
    let rows = pairs.combinations();
    assert_eq!(pairs.missing_in(&rows), [""; 0]);
    for row in &rows {
        assert_eq!(row.len(), 4);
        assert!(
            !has(row, "c", "2") && (!has(row, "a", "1") || has(row, "b", "1")),
            "{row:?}"
        );
    }
    let occurs = |one: (&str, &str), other: (&str, &str)| {
        rows.iter()
            .any(|row| has(row, one.0, one.1) && has(row, other.0, other.1))
    };
    for value in ["0", "1", "2", "3"] {
        assert!(occurs(("a", "1"), ("d", value)) && occurs(("c", "1"), ("d", value)));
    }
    assert!(occurs(("a", "0"), ("b", "0")) && occurs(("a", "1"), ("b", "1")));
    // Fewer than all of them.
    assert!(rows.len() < 14, "{rows:?}");

    let mut fewer = rows.clone();
    fewer.retain(|row| !has(row, "d", "3"));
    let missing = pairs.missing_in(&fewer);
    let with_it = missing.iter().filter(|it| it.contains(r#"("d", "3")"#));
    assert_eq!(with_it.count(), 6, "{missing:?}");
}
