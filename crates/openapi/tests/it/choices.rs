//! What an owner chooses and says about operations.

use lambda_tools_openapi::{OpenApi, Reduction};
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(include_str!("../documents/pets.json")).unwrap()
}

fn api() -> OpenApi {
    OpenApi::new(document()).unwrap()
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
    let error = OpenApi::new(document).unwrap().reduce().unwrap_err();
    let error = error.to_string();
    assert!(error.ends_with("methods: pets (3), people (1)"), "{error}");
}

#[test]
fn operations_are_chosen_in_several_ways() {
    let (list, find) = ("Pets.ListPets@1.0.0", "Pets.FindPets@1.0.0");
    let pets = || api().include_tags(["pets"]);
    for (api, expected) in [
        (api(), &[find][..]),
        (pets(), &[list, find]),
        (pets().include_methods(["get"]), &[list]),
        (api().include_methods(["GET"]), &[list]),
        (api().include_paths(["/pe*"]).exclude(["search"]), &[list]),
        (
            api().include_operations(["GET /pets"]).exclude(["search"]),
            &[list],
        ),
    ] {
        assert_eq!(ids(&api.reduce().unwrap()), expected);
    }
    let reduction = api().include_all().reduce().unwrap();
    let reason = &reduction.report.left_out[0];
    assert_eq!(reason.operation, "GET /vault");
    assert!(reason.text.contains("mutualTLS"), "{reason}");
    assert_eq!(reduction.report.operations, 4);
    assert_eq!(reduction.report.chosen, 3);
}

#[test]
fn users_grant_their_own_tokens() {
    let reduction = api().include_tags(["pets"]).reduce().unwrap();
    let provider = &reduction.tools.providers()[0];
    assert_eq!(provider.id, "pets");
    assert_eq!(provider.token_url, "https://login.example/token");
    assert_eq!(provider.scopes, ["read"]);
    assert!(reduction.tools.secrets().is_empty());
}

#[test]
fn too_many_tools_need_a_decision() {
    let mut document = document();
    for number in 0..50 {
        document["paths"][format!("/many/{number}")] =
            json!({"get": {"operationId": format!("many{number}"), "responses": {}}});
    }
    let api = OpenApi::new(document).unwrap().include_all();
    let error = api.reduce().unwrap_err().to_string();
    assert!(
        error.contains("52 tools") && error.contains("searchable"),
        "{error}"
    );
    assert_eq!(api.clone().list_all().reduce().unwrap().tools.len(), 52);
    assert_eq!(api.searchable().tools().unwrap().len(), 3);
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
    let tools = OpenApi::new(document)
        .unwrap()
        .include_all()
        .tools()
        .unwrap();
    let toolkit = lambda_tools_core::Toolkit::new(tools).unwrap();
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
