//! The pictures below `docs/images`: each has a page, and is in rustdoc.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use test_support::{documents::pages, repository};

/// Returns the names of the pictures' files, sorted.
fn pictures() -> Vec<String> {
    let files = fs::read_dir(repository("docs/images")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert!(names.len() > 3);
    names
}

/// Returns what a picture is called in a page, and its media type.
fn reference(file: &str) -> (String, &'static str) {
    let path = Path::new(file);
    let kind = match path.extension().unwrap().to_str().unwrap() {
        "png" => "png",
        "svg" => "svg+xml",
        other => panic!("{file}: {other} is no kind of picture"),
    };
    let name = path.file_stem().unwrap().to_str().unwrap();
    (format!("picture-{name}"), kind)
}

#[test]
fn every_picture_is_on_a_page() {
    let pages = pages();
    for file in pictures() {
        let (name, _) = reference(&file);
        let is_shown = |(_, text): &(String, String)| {
            text.contains(&format!("[{name}]\n"))
                || text.contains(&format!("](docs/images/{file})"))
        };
        assert!(pages.iter().any(is_shown), "no page has {file}");
    }
}

/// There, a page has only the definitions in this file. `UPDATE_EXPECTED=1` writes it.
#[test]
fn the_documentation_of_the_crate_has_the_pictures() {
    let lines = pictures().into_iter().map(|file| {
        let (name, kind) = reference(&file);
        let data = STANDARD.encode(fs::read(repository("docs/images").join(file)).unwrap());
        format!("[{name}]: data:image/{kind};base64,{data}\n")
    });
    let expected: String = lines.collect();
    let path = repository("src/pictures.md");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let file = fs::read_to_string(path).unwrap();
    assert!(
        file == expected,
        "src/pictures.md is out of date: UPDATE_EXPECTED=1 writes it"
    );
    assert!(file.len() <= 200_000, "the crate grows by {}", file.len());
}
