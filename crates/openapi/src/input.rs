//! The input of a tool: one flat object with the parameters and the body of an operation.

use std::cmp::Reverse;

use lambda_tools_schema::{
    JsonObject,
    document::Document,
    inline::{Converter, Limits, say_in_words, sentence_on},
    text::cut,
};
use serde_json::{Map, Value, json};

use crate::{
    body::Body,
    names::key_of,
    operation::Operation,
    parameters::{Filled, Parameter},
    plan::{BodyPlan, ParameterPlan, Place},
};

/// The maximum size, in bytes, of an input's schema.
pub(crate) const LARGEST: usize = 32 * 1024;

/// The length, in bytes, of a description that has to be short.
const SHORTEST: usize = 40;

/// An input, and how a request uses it.
#[derive(Default)]
pub(crate) struct Input {
    pub(crate) schema: Value,
    pub(crate) parameters: Vec<ParameterPlan>,
    pub(crate) body: Option<BodyPlan>,
    /// Sentences to add to the tool's description.
    pub(crate) notes: Vec<String>,
    /// True if parts of the schema were left out.
    pub(crate) is_cut: bool,
    /// Notes for the report.
    pub(crate) doubts: Vec<String>,
    /// True if the header `Authorization` is a parameter.
    pub(crate) wants_authorization: bool,
    /// Sets of properties, of which one must be there.
    pub(crate) one_of: Vec<Vec<String>>,
    is_open: bool,
    properties: JsonObject,
    required: Vec<Value>,
}

/// The values that an owner fixes, by the names of parameters.
pub(crate) type Fixed = Map<String, Value>;

impl Input {
    /// Returns the input of an operation, with as much of its schema as fits.
    pub(crate) fn of(
        operation: &Operation,
        document: &Document,
        filled: &[Filled],
        fixed: &Fixed,
    ) -> Result<Self, String> {
        let mut input = Self::default();
        for limits in Limits::ALL {
            input = Self::within(limits, operation, document, filled, fixed)?;
            if input.schema.to_string().len() <= LARGEST {
                return Ok(input);
            }
        }
        let smallest = input.without_rules();
        smallest.ok_or_else(|| format!("its input is larger than {} KB", LARGEST / 1024))
    }

    /// Takes the rules of the largest properties away until the schema is small enough.
    fn without_rules(mut self) -> Option<Self> {
        let size = |it: &Value| it.to_string().len();
        let mut whole = size(&self.schema);
        let properties = self.schema["properties"].as_object_mut()?;
        let mut all: Vec<_> = properties.values_mut().map(|it| (size(it), it)).collect();
        all.sort_by_key(|(size, _)| Reverse(*size));
        for (before, property) in all {
            if whole <= LARGEST {
                break;
            }
            let text = property["description"].as_str().unwrap_or_default();
            *property = json!({"description": cut(text, SHORTEST)});
            whole = whole + size(property) - before;
        }
        self.is_cut = true;
        (whole <= LARGEST).then_some(self)
    }

    fn within<'a>(
        limits: Limits,
        operation: &Operation<'a>,
        document: &'a Document,
        filled: &[Filled],
        fixed: &Fixed,
    ) -> Result<Self, String> {
        let mut converter = Converter::new(document, limits);
        let mut parameters = Vec::new();
        let mut wants_authorization = false;
        for object in operation.parameters(document)? {
            let is_header = object.get("in").is_some_and(|it| it == "header");
            let name = object.get("name").and_then(Value::as_str);
            let is_it = name.is_some_and(|it| it.eq_ignore_ascii_case("authorization"));
            wants_authorization |= is_header && is_it;
            parameters.extend(Parameter::of(object, filled, &mut converter)?);
        }
        let body = Body::of(operation, document, &mut converter)?;
        let mut input = Self {
            is_cut: converter.is_cut,
            doubts: converter.doubts.into_iter().collect(),
            wants_authorization,
            ..Self::default()
        };
        for parameter in parameters {
            let template = format!("{{{}}}", parameter.name);
            if parameter.place == Place::Path && !operation.path.contains(&template) {
                let doubt = format!("its path has no {template}, which is among its parameters");
                input.doubts.push(doubt);
                continue;
            }
            input.add_parameter(parameter, fixed);
        }
        if let Some(body) = body {
            input.add_body(body, fixed);
        }
        input.check_path(operation.path)?;
        let unknown = fixed.keys().find(|name| !input.has_fixed(name));
        if let Some(name) = unknown {
            return Err(format!("it has no parameter {name:?} that could be fixed"));
        }
        input.close();
        Ok(input)
    }

    fn add_parameter(&mut self, mut parameter: Parameter, fixed: &Fixed) {
        if let Some(value) = fixed.get(&parameter.name) {
            self.parameters.push(parameter.plan(Some(value.clone())));
            return;
        }
        if self.properties.contains_key(&parameter.key) {
            let place = format!("{:?}", parameter.place).to_ascii_lowercase();
            parameter.key = self.free_key(&format!("{}_{place}", parameter.key));
        }
        self.parameters.push(parameter.plan(None));
        let schema = parameter.schema.into();
        self.add(parameter.key, schema, parameter.is_required);
    }

    fn add_body(&mut self, body: Body, fixed: &Fixed) {
        let mut plan = body.plan;
        self.is_open = body.is_open;
        for (name, schema) in body.properties {
            if let Some(value) = fixed.get(&name) {
                plan.fixed.insert(name, value.clone());
                continue;
            }
            let mut key = key_of(&name);
            if self.properties.contains_key(&key) {
                key = self.free_key(&format!("body_{key}"));
            }
            let is_required = body.required.contains(&name);
            if key != name {
                plan.names.insert(key.clone(), name);
            }
            self.add(key, schema, is_required);
        }
        let key = |name: &String| {
            let renamed = plan.names.iter().find(|(_, it)| *it == name);
            renamed.map_or(name, |(key, _)| key).clone()
        };
        let is_chosen = |it: &&String| !fixed.contains_key(*it);
        let set = |it: &Vec<String>| it.iter().filter(is_chosen).map(key).collect();
        self.one_of = body.one_of.iter().map(set).collect();
        if self.one_of.contains(&Vec::new()) {
            self.one_of.clear();
        }
        if !self.one_of.is_empty() {
            self.notes.push(sentence_on(&self.one_of));
        }
        self.body = Some(plan);
    }

    fn add(&mut self, key: String, schema: Value, is_required: bool) {
        if is_required {
            self.required.push(key.clone().into());
        }
        self.properties.insert(key, schema);
    }

    /// Returns a key that the input does not have yet.
    fn free_key(&self, key: &str) -> String {
        let key = &key[..key.len().min(60)];
        let mut numbered = (2..).map(|number| format!("{key}_{number}"));
        let is_free = |it: &String| !self.properties.contains_key(it);
        let first = Some(key.to_owned()).filter(is_free);
        first.unwrap_or_else(|| numbered.find(is_free).expect("numbers do not end"))
    }

    fn has_fixed(&self, name: &str) -> bool {
        let body = self.body.as_ref();
        let mut parameters = self.parameters.iter();
        body.is_some_and(|it| it.fixed.contains_key(name))
            || parameters.any(|it| it.fixed.is_some() && it.name() == name)
    }

    /// Checks that the path has a parameter for each of its templates.
    fn check_path(&self, path: &str) -> Result<(), String> {
        let names = path.split('{').skip(1);
        for (name, _) in names.filter_map(|it| it.split_once('}')) {
            let is_known = |it: &ParameterPlan| it.place == Place::Path && it.name() == name;
            if !self.parameters.iter().any(is_known) {
                let error = format!("its path has {{{name}}}, which is not among its parameters");
                return Err(error);
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        let mut schema = json!({"type": "object", "properties": self.properties.clone()});
        say_in_words(&mut schema);
        if !self.required.is_empty() {
            schema["required"] = self.required.clone().into();
        }
        schema["additionalProperties"] = self.is_open.into();
        self.schema = schema;
    }
}
