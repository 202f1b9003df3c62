//! What an owner chooses and says about operations.

use std::time::Duration;

use lambda_tools_core::Toolkit;
use lambda_tools_openapi::{ApiTools, OpenApi, OpenApiOptions, Reduction};
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(include_str!("../documents/pets.json")).unwrap()
}

fn reduced(options: OpenApiOptions) -> Reduction {
    OpenApi::new(document(), options).unwrap().reduce().unwrap()
}

/// Returns options in which this one is set.
fn with(set: impl FnOnce(&mut OpenApiOptions)) -> OpenApiOptions {
    let mut options = OpenApiOptions::default();
    set(&mut options);
    options
}

fn list(item: &str) -> Vec<String> {
    vec![item.to_owned()]
}

fn ids(reduction: &Reduction) -> Vec<String> {
    let tools: Value = serde_json::from_str(&reduction.tools.to_json()).unwrap();
    let tools = tools["tools"].as_array().unwrap().iter();
    tools
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn nothing_becomes_a_tool_that_nobody_chose() {
    let mut document = document();
    let search = document["paths"]["/pets"]["post"].as_object_mut().unwrap();
    search.remove("x-mcp");
    let api = OpenApi::new(document, OpenApiOptions::default()).unwrap();
    let error = api.reduce().unwrap_err().to_string();
    assert!(error.ends_with("methods: pets (3), people (1)"), "{error}");
}

#[test]
fn operations_are_chosen_in_several_ways() {
    let (all, find) = ("Pets.ListPets@1.0.0", "Pets.FindPets@1.0.0");
    let pets = with(|it| it.include_tags = list("pets"));
    let read_pets = OpenApiOptions {
        include_methods: list("get"),
        ..pets.clone()
    };
    let by_path = with(|it| {
        it.include_paths = list("/pe*");
        it.exclude = list("search");
    });
    let by_name = with(|it| {
        it.include_operations = list("GET /pets");
        it.exclude = list("search");
    });
    for (options, expected) in [
        (OpenApiOptions::default(), &[find][..]),
        (pets, &[all, find]),
        (read_pets, &[all]),
        (with(|it| it.include_methods = list("GET")), &[all]),
        (by_path, &[all]),
        (by_name, &[all]),
    ] {
        assert_eq!(ids(&reduced(options)), expected);
    }
    let reduction = reduced(OpenApiOptions::all());
    let reason = &reduction.report.left_out[0];
    assert_eq!(reason.operation, "GET /vault");
    assert!(reason.text.contains("mutualTLS"), "{reason}");
    assert_eq!(reduction.report.operations, 4);
    assert_eq!(reduction.report.chosen, 3);
}

#[test]
fn users_grant_their_own_tokens() {
    let reduction = reduced(with(|it| it.include_tags = list("pets")));
    let provider = &reduction.tools.providers()[0];
    assert_eq!(provider.id, "pets");
    assert_eq!(provider.token_url, "https://login.example/token");
    assert_eq!(provider.scopes, ["read"]);
    assert!(reduction.tools.secrets().is_empty());
}

/// Also after the tools were written to a file.
#[test]
fn equal_calls_of_chosen_operations_are_one() {
    let operation = json!({"summary": "Does it", "x-mcp": true, "responses": {}});
    let mut document = document();
    document["paths"] = json!({"/one": {"post": operation}, "/other": {"post": operation}});
    let options = OpenApiOptions {
        once: [("POST /one".to_owned(), 60)].into(),
        ..OpenApiOptions::all()
    };
    let reduction = OpenApi::new(document, options).unwrap().reduce().unwrap();
    let tools = ApiTools::from_json(&reduction.tools.to_json()).unwrap();
    let toolkit = Toolkit::new(tools.tools().unwrap()).unwrap();
    let windows = toolkit.entries().iter();
    let windows = windows.map(|it| (it.id.qualified(), it.tool.once_within));
    let mut windows: Vec<_> = windows.collect();
    windows.sort_unstable();
    let minute = Some(Duration::from_mins(1));
    let expected = [("Pets.POSTOne", minute), ("Pets.POSTOther", None)];
    assert_eq!(windows, expected);
}

#[test]
fn too_many_tools_need_a_decision() {
    let mut document = document();
    for number in 0..50 {
        document["paths"][format!("/many/{number}")] =
            json!({"get": {"operationId": format!("many{number}"), "responses": {}}});
    }
    let mut api = OpenApi::new(document, OpenApiOptions::all()).unwrap();
    let error = api.reduce().unwrap_err().to_string();
    let says = |text: &str| error.contains(text);
    assert!(says("52 tools") && says("searchable"), "{error}");
    api.options.list_all = true;
    assert_eq!(api.tools().unwrap().len(), 52);
    (api.options.list_all, api.options.searchable) = (false, true);
    assert_eq!(api.tools().unwrap().len(), 3);
}

#[test]
fn only_the_owner_says_that_a_tool_deletes_nothing() {
    let operation =
        |extension: Value| json!({"summary": "Does it", "x-mcp": extension, "responses": {}});
    let mut document = document();
    document["paths"] = json!({"/it": {
        "get": operation(true.into()), "post": operation(true.into()), "put": operation(true.into()),
        "patch": operation(true.into()), "delete": operation(true.into()),
    }, "/said": {
        "post": operation(json!({"destructive": false})), "delete": operation(json!({"destructive": false})),
        "put": operation(json!({"destructive": true})), "get": operation(json!({"destructive": true})),
    }});
    let api = OpenApi::new(document, OpenApiOptions::all()).unwrap();
    let toolkit = lambda_tools_core::Toolkit::new(api.tools().unwrap()).unwrap();
    let hints = toolkit.entries().iter().map(|it| {
        let (name, hints) = (it.id.qualified(), it.tool.hints);
        (name, hints.is_read_only, hints.is_destructive)
    });
    let mut hints: Vec<_> = hints.collect();
    hints.sort_unstable();
    let expected = [
        ("Pets.DELETEIt", Some(false), Some(true)),
        ("Pets.DELETESaid", Some(false), Some(false)),
        ("Pets.GETIt", Some(true), None),
        ("Pets.GETSaid", Some(true), None),
        ("Pets.PATCHIt", Some(false), None),
        ("Pets.POSTIt", Some(false), None),
        ("Pets.POSTSaid", Some(false), Some(false)),
        ("Pets.PUTIt", Some(false), None),
        ("Pets.PUTSaid", Some(false), Some(true)),
    ];
    assert_eq!(hints, expected);
}
