//! OpenAPI Overlay 1.0 and 1.1: changes to a document that is somebody else's.
//!
//! A changed copy of the document would have to be changed again at each of its updates. The rules are
//! those of 1.1, which says more precisely what 1.0 means, and allows primitive values as targets.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use serde_json_path::{JsonPath, NormalizedPath};

use crate::Error;

/// An Overlay Object.
#[derive(Deserialize)]
struct Overlay {
    overlay: String,
    actions: Vec<Action>,
}

/// An Action Object.
#[derive(Deserialize)]
struct Action {
    target: String,
    #[serde(default, deserialize_with = "present")]
    update: Option<Value>,
    copy: Option<String>,
    #[serde(default)]
    remove: bool,
}

/// Applies an Overlay, and returns what its author should look at.
pub(crate) fn apply(overlay: Value, document: &mut Value) -> Result<Vec<String>, Error> {
    let Overlay { overlay, actions } = Overlay::deserialize(overlay)?;
    if !overlay.starts_with("1.0.") && !overlay.starts_with("1.1.") {
        return Err(
            format!("the version {overlay} of the Overlay Specification is not known").into(),
        );
    }
    let mut warnings = Vec::new();
    for (at, action) in actions.iter().enumerate() {
        let named = |text: &str| format!("action {} ({}) {text}", at + 1, action.target);
        let warning = action
            .apply(document)
            .map_err(|error| named(&error.to_string()))?;
        warnings.extend(warning.map(named));
    }
    Ok(warnings)
}

impl Action {
    /// Changes the target nodes, or returns why there is nothing to change.
    fn apply(&self, document: &mut Value) -> Result<Option<&'static str>, Error> {
        let targets = locations(&self.target, document)?;
        if targets.is_empty() {
            return Ok(Some("matches nothing"));
        }
        if self.remove {
            targets.iter().try_for_each(|it| remove(document, it))?;
            return Ok(None);
        }
        let Some(value) = self.value(document)? else {
            return Ok(Some("changes nothing"));
        };
        for target in targets {
            update(
                document.pointer_mut(&target).ok_or("has lost a target")?,
                &value,
            )?;
        }
        Ok(None)
    }

    /// Returns the value to apply: the action's own, or one of the document.
    fn value(&self, document: &Value) -> Result<Option<Value>, Error> {
        let path = match (&self.update, &self.copy) {
            (Some(_), Some(_)) => return Err("has both `update` and `copy`".into()),
            (value, None) => return Ok(value.clone()),
            (None, Some(path)) => path,
        };
        match &*JsonPath::parse(path)?.query(document).all() {
            [node] => Ok(Some((*node).clone())),
            nodes => Err(format!("copies {} nodes, not one", nodes.len()).into()),
        }
    }
}

/// Returns pointers to the nodes, the last one first: the removal of one does not move another.
fn locations(path: &str, document: &Value) -> Result<Vec<String>, Error> {
    let path = JsonPath::parse(path)?;
    // In the order of the document.
    let nodes = path.query_located(document).dedup();
    let mut pointers: Vec<_> = nodes
        .locations()
        .map(NormalizedPath::to_json_pointer)
        .collect();
    pointers.reverse();
    Ok(pointers)
}

fn remove(document: &mut Value, pointer: &str) -> Result<(), Error> {
    let (parent, name) = pointer
        .rsplit_once('/')
        .ok_or("would remove the whole document")?;
    match document.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            items.remove(name.parse()?);
        }
        _ => {}
    }
    Ok(())
}

/// Applies a value to a target node: Overlay 1.1.0, Action Object, `update`.
fn update(target: &mut Value, value: &Value) -> Result<(), Error> {
    match target {
        Value::Array(items) if !value.is_array() => items.push(value.clone()),
        _ => merge(target, value, "the target")?,
    }
    Ok(())
}

/// Merges a value into a node of the same type: Overlay 1.1.0, Action Object.
fn merge(node: &mut Value, value: &Value, name: &str) -> Result<(), Error> {
    match (node, value) {
        (Value::Object(fields), Value::Object(others)) => merge_fields(fields, others)?,
        (Value::Array(items), Value::Array(others)) => items.extend_from_slice(others),
        // The specification's structured example leaves `components` and `tags` empty.
        (Value::Object(_) | Value::Array(_), Value::Null) => {}
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => {
            return Err(format!("has another type than {name}").into());
        }
        (primitive, value) => *primitive = value.clone(),
    }
    Ok(())
}

fn merge_fields(fields: &mut Map<String, Value>, others: &Map<String, Value>) -> Result<(), Error> {
    for (name, value) in others {
        match fields.get_mut(name) {
            Some(field) => merge(field, value, name)?,
            None => _ = fields.insert(name.clone(), value.clone()),
        }
    }
    Ok(())
}

/// Returns a value that is present, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse::parse;

    /// Returns the document and the warnings after these actions, in YAML as the specification has them.
    fn applied(document: &str, actions: &str) -> (Value, Vec<String>) {
        let mut document = parse(document).unwrap();
        let warnings = apply(overlay(actions), &mut document).unwrap();
        (document, warnings)
    }

    fn overlay(actions: &str) -> Value {
        let info = "info: {title: An overlay, version: 1.0.0}";
        parse(&format!("overlay: 1.1.0\n{info}\nactions:\n{actions}")).unwrap()
    }

    fn error_of(document: &Value, actions: &str) -> String {
        apply(overlay(actions), &mut document.clone())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn structured_overlay() {
        let document = "
            info: {title: Pets}
            paths: {/: {get: {summary: Old, tags: [a]}}}
            components: {schemas: {}}
            tags: [{name: a}]";
        let actions = "
  - target: '$' # Root of document
    update:
      info:
        x-overlay-applied: structured-overlay
      paths:
        '/':
          summary: 'The root resource'
          get:
            summary: 'Retrieve the root resource'
            x-rate-limit: 100
        '/pets':
          get:
            summary: 'Retrieve a list of pets'
            x-rate-limit: 100
      components:
      tags:
";
        let expected = json!({
            "info": {"title": "Pets", "x-overlay-applied": "structured-overlay"},
            "paths": {
                "/": {
                    "summary": "The root resource",
                    "get": {"summary": "Retrieve the root resource", "tags": ["a"], "x-rate-limit": 100},
                },
                "/pets": {"get": {"summary": "Retrieve a list of pets", "x-rate-limit": 100}},
            },
            "components": {"schemas": {}},
            "tags": [{"name": "a"}],
        });
        assert_eq!(applied(document, actions), (expected, vec![]));
    }

    #[test]
    fn targeted_overlay() {
        let document = "paths: {/foo: {get: {description: a}}, /bar: {get: {description: b}, post: {x-safe: true}}}";
        let actions = "
  - target: $.paths['/foo'].get.description
    update: This is the new description
  - target: $.paths['/bar'].get.description
    update: This is the updated description
  - target: $.paths['/bar']
    update:
      post:
        description: This is an updated description of a child object
        x-safe: false
";
        let post = json!({"description": "This is an updated description of a child object", "x-safe": false});
        let expected = json!({"paths": {
            "/foo": {"get": {"description": "This is the new description"}},
            "/bar": {"get": {"description": "This is the updated description"}, "post": post},
        }});
        assert_eq!(applied(document, actions), (expected, vec![]));
    }

    #[test]
    fn wildcard_overlay() {
        let document = "
            paths:
              /a: {get: {parameters: [{name: filter, in: query}, {name: filter, in: header}]}, put: {}}
              /b: {get: {}}";
        let actions = "
  - target: $.paths.*.get
    update:
      x-safe: true
  - target: $.paths.*.get.parameters[?@.name=='filter' && @.in=='query']
    update:
      schema:
        $ref: '#/components/schemas/filterSchema'
";
        let parameters = json!([
            {"name": "filter", "in": "query", "schema": {"$ref": "#/components/schemas/filterSchema"}},
            {"name": "filter", "in": "header"},
        ]);
        let expected = json!({"paths": {
            "/a": {"get": {"parameters": parameters, "x-safe": true}, "put": {}},
            "/b": {"get": {"x-safe": true}},
        }});
        assert_eq!(applied(document, actions), (expected, vec![]));
    }

    #[test]
    fn array_modification() {
        let document = "paths: {/a: {get: {parameters: [{name: dummy}, {name: id}, {name: dummy}], tags: [dummy, a]}}}";
        let actions = "
  - target: $.paths.*.get.parameters
    update:
      name: newParam
      in: query
  - target: $.paths.*.get.parameters[?@.name == 'dummy']
    remove: true
  - target: $.paths.*.get.tags[?@ == 'dummy']
    remove: true
  - target: $.paths.*.get.tags
    update: [b, c]
";
        let parameters = json!([{"name": "id"}, {"name": "newParam", "in": "query"}]);
        let expected =
            json!({"paths": {"/a": {"get": {"parameters": parameters, "tags": ["a", "b", "c"]}}}});
        assert_eq!(applied(document, actions), (expected, vec![]));
    }

    #[test]
    fn traits() {
        let document = "
paths:
  /items:
    get:
      x-oai-traits: ['paged']
  /items/{id}/subitems:
    get:
      x-oai-traits: ['paged']
      parameters:
        - name: id
  /other:
    get: {}
";
        let actions = "
  - target: $.paths[?(@.get['x-oai-traits'][?(@ == 'paged')])].get
    update:
      parameters:
        - name: top
        - name: skip
";
        let expected = json!({"paths": {
            "/items": {"get": {"x-oai-traits": ["paged"], "parameters": [{"name": "top"}, {"name": "skip"}]}},
            "/items/{id}/subitems": {"get": {
                "x-oai-traits": ["paged"],
                "parameters": [{"name": "id"}, {"name": "top"}, {"name": "skip"}],
            }},
            "/other": {"get": {}},
        }});
        assert_eq!(applied(document, actions), (expected, vec![]));
    }

    /// The specification's three examples of copies have the same source.
    #[test]
    fn copies() {
        let get = json!({"responses": {"200": {"description": "OK"}}});
        let delete = json!({"responses": {"200": {"description": "OK"}}});
        let document =
            json!({"paths": {"/items": {"get": get}, "/some-items": {"delete": delete}}})
                .to_string();
        let onto = "
  - target: '$.paths[\"/some-items\"]'
    copy: '$.paths[\"/items\"]'
";
        let ensured = "
  - target: '$.paths'
    update: { \"/other-items\": {} }
  - target: '$.paths[\"/other-items\"]'
    copy: '$.paths[\"/items\"]'
";
        let moved = "
  - target: '$.paths'
    update: { \"/new-items\": {} }
  - target: '$.paths[\"/new-items\"]'
    copy: '$.paths[\"/items\"]'
  - target: '$.paths[\"/items\"]'
    remove: true
";
        for (actions, expected) in [
            (
                onto,
                json!({"/items": {"get": get}, "/some-items": {"get": get, "delete": delete}}),
            ),
            (
                ensured,
                json!({"/items": {"get": get}, "/other-items": {"get": get}, "/some-items": {"delete": delete}}),
            ),
            (
                moved,
                json!({"/new-items": {"get": get}, "/some-items": {"delete": delete}}),
            ),
        ] {
            assert_eq!(
                applied(&document, actions),
                (json!({"paths": expected}), vec![])
            );
        }
    }

    #[test]
    fn removal_wins_and_takes_every_node() {
        for (document, target, expected) in [
            ("a: 1\nb: 2", "$.a", json!({"b": 2})),
            ("a: [0, 1, 2, 3]", "$.a[2, 0, 0]", json!({"a": [1, 3]})),
            ("a: [[1, 2], [3, 4], 5]", "$.a..[0]", json!({"a": [[4], 5]})),
            (
                "{~/x: 1, ~1x: 2, it's: 3}",
                r"$['~/x', 'it\'s']",
                json!({"~1x": 2}),
            ),
            // RFC 6901, 4: `~01` is `~1`, and not `/`.
            ("{~1x: 1, /x: 2}", "$['~1x']", json!({"/x": 2})),
            ("{~0: 1, '~': 2}", "$['~0']", json!({"~": 2})),
        ] {
            let action = format!("- target: {target}\n  update: {{b: 3}}\n  remove: true");
            assert_eq!(applied(document, &action), (expected, vec![]), "{target}");
        }
    }

    #[test]
    fn actions_apply_to_the_result_of_those_before() {
        let actions = "- {target: $.a, remove: true}\n- {target: $, update: {a: {b: 2}}}\n- {target: $.a.b, update: null}";
        assert_eq!(
            applied("a: 1", actions),
            (json!({"a": {"b": null}}), vec![])
        );
    }

    #[test]
    fn actions_without_an_effect_are_warnings() {
        let actions =
            "- target: $.paths['/gone']\n  remove: true\n- target: $\n  description: Nothing";
        let (document, warnings) = applied("a: 1", actions);
        assert_eq!(document, json!({"a": 1}));
        assert_eq!(
            warnings,
            [
                "action 1 ($.paths['/gone']) matches nothing",
                "action 2 ($) changes nothing"
            ]
        );
    }

    #[test]
    fn incompatible_values_are_errors() {
        let document = json!({"a": {"b": [1], "c": "text"}});
        for (action, expected) in [
            (
                "- {target: $.a, update: text}",
                "action 1 ($.a) has another type than the target",
            ),
            (
                "- {target: $.a, update: {b: {}}}",
                "action 1 ($.a) has another type than b",
            ),
            (
                "- {target: $.a.c, update: {}}",
                "action 1 ($.a.c) has another type than the target",
            ),
            (
                "- {target: $.a, copy: '$.a.*'}",
                "action 1 ($.a) copies 2 nodes, not one",
            ),
            (
                "- {target: $.a, copy: $.a, update: {}}",
                "action 1 ($.a) has both `update` and `copy`",
            ),
            (
                "- {target: $, remove: true}",
                "action 1 ($) would remove the whole document",
            ),
        ] {
            assert_eq!(error_of(&document, action), expected);
        }
        assert!(
            error_of(&document, "- {target: $.x-a, remove: true}").starts_with("action 1 ($.x-a) ")
        );
    }

    #[test]
    fn other_versions_are_errors() {
        for version in ["1.2.0", "2.0.0", "1", ""] {
            let overlay = json!({"overlay": version, "actions": []});
            assert!(apply(overlay, &mut json!({})).is_err(), "{version}");
        }
    }
}
