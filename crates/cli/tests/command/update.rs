//! `lambda-tools openapi --update`.

use super::{Folder, PETS};

#[test]
fn an_update_has_the_same_options_and_says_what_has_changed() {
    let folder = Folder::new("update");
    let made_with =
        "pets.yaml --include-tag pets --toolkit Zoo -o tools.json --report report.jsonl";
    folder.run(made_with).succeeds();
    folder.write("report.jsonl", "");
    let renamed = PETS.replace("operationId: deletePet", "operationId: removePet");
    let renamed = renamed.replace("Returns a pet.", "Returns one pet.");
    folder.write("pets.yaml", &renamed);
    let ended = folder.run("--update tools.json").succeeds();
    let expected =
        "removed  Zoo.DeletePet@1.0.0\nchanged  Zoo.GetPet@1.0.0\nadded    Zoo.RemovePet@1.0.0\n";
    assert!(ended.stdout.ends_with(expected), "{ended:?}");
    let words: Vec<_> = made_with.split(' ').collect();
    let tools = folder.json("tools.json");
    assert_eq!(tools["made_with"], serde_json::json!(words));
    // The options in a file choose no other file to write.
    assert_eq!(folder.read("report.jsonl"), "");

    let edited = folder.read("tools.json").replace("one pet", "a cat");
    folder.write("tools.json", &edited);
    let ended = folder.run("--update tools.json");
    ended.fails("tools.json has been edited: ");
    folder.run("--update tools.json --force").succeeds();
    folder.write("tools.json", r#"{"made_with": ["--new", "x"]}"#);
    let ended = folder.run("--update tools.json");
    ended.fails("does not say which options made it");
}
