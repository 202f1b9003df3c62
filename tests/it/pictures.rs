//! The pictures below `docs/images`: each shows what its text says, has a page, and is in rustdoc.
//!
//! The toolbox's tests check the texts, with a browser.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};
use test_support::{documents::pages, repository};

/// Returns all pictures, sorted by name.
fn pictures() -> Vec<PathBuf> {
    let files = fs::read_dir(repository("docs/images")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let mut pictures: Vec<_> = paths.filter(|path| kind_of(path) != "txt").collect();
    pictures.sort();
    assert!(pictures.len() > 3);
    pictures
}

fn kind_of(path: &Path) -> &str {
    path.extension().unwrap().to_str().unwrap()
}

fn name_of(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// Returns the texts of the `tEXt` chunks in a PNG file.
fn texts_in(png: &[u8]) -> Vec<&[u8]> {
    let mut rest = png.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let mut texts = vec![];
    while let Some((length, chunk)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        if let Some(text) = chunk.strip_prefix(b"tEXt") {
            texts.push(&text[..length]);
        }
        // The kind before, and the checksum after.
        rest = &chunk[4 + length + 4..];
    }
    texts
}

#[test]
fn a_picture_is_as_new_as_its_text() {
    for path in pictures() {
        let picture = fs::read(&path).unwrap();
        assert!(picture.len() <= 40_000, "{}", path.display());
        let text = path.with_extension("txt");
        if kind_of(&path) == "svg" && !text.exists() {
            continue;
        }
        let hash = Sha256::digest(fs::read(text).unwrap());
        let digits: Vec<_> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let hash = digits.concat();
        let is_named = match kind_of(&path) {
            "svg" => String::from_utf8(picture).unwrap().contains(&hash),
            _ => texts_in(&picture).contains(&format!("Shows\0{hash}").as_bytes()),
        };
        assert!(
            is_named,
            "{} is older than its text: tests/pictures makes it again",
            path.display()
        );
    }
}

#[test]
fn every_picture_is_on_a_page() {
    let pages = pages();
    for path in pictures() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let is_shown = |(_, text): &(String, String)| {
            text.contains(&format!("[picture-{}]\n", name_of(&path)))
                || text.contains(&format!("](docs/images/{file})"))
        };
        assert!(pages.iter().any(is_shown), "no page has {file}");
    }
}

/// There, a page has only the definitions in this file.
#[test]
fn the_documentation_of_the_crate_has_the_pictures() {
    let lines = pictures().into_iter().map(|path| {
        let kind = match kind_of(&path) {
            "svg" => "svg+xml",
            kind => kind,
        };
        let data = STANDARD.encode(fs::read(&path).unwrap());
        format!(
            "[picture-{}]: data:image/{kind};base64,{data}\n",
            name_of(&path)
        )
    });
    let expected: String = lines.collect();
    let file = fs::read_to_string(repository("src/pictures.md")).unwrap();
    assert!(
        file == expected,
        "src/pictures.md is out of date: tests/pictures writes it"
    );
    assert!(file.len() <= 200_000, "the crate grows by {}", file.len());
}

/// People who do not see a diagram can read it.
#[test]
fn a_diagram_has_its_text() {
    for path in pictures().iter().filter(|path| kind_of(path) == "svg") {
        let diagram = fs::read_to_string(path).unwrap();
        for part in ["<title", "<desc"] {
            assert!(diagram.contains(part), "{} {part}", path.display());
        }
    }
    let names: BTreeSet<_> = pictures()
        .iter()
        .map(|path| name_of(path).to_owned())
        .collect();
    assert_eq!(names.len(), pictures().len(), "two pictures have one name");
}
