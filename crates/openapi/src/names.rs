//! Names of tools and of parameters, from those of the document.
//!
//! A model's API that does not accept one name rejects the whole list of tools. So names are
//! rewritten, and requests use the originals.

use std::collections::{BTreeMap, BTreeSet};

use lambda_tools_core::text::hex;
use lambda_tools_schema::text::words_of;
use sha2::{Digest, Sha256};

use crate::operation::METHODS;

/// The maximum length of a tool's name, `Toolkit_Operation`: 64, minus the prefix that clients add.
const LONGEST_NAME: usize = 56;
/// The maximum length of a toolkit's name.
const LONGEST_TOOLKIT: usize = 24;
/// The maximum length of a parameter.
const LONGEST_KEY: usize = 64;

/// Returns the toolkit's name for an API's title: `Figma` for `Figma API`.
pub(crate) fn toolkit_of(title: &str) -> String {
    let all = title.split(|it: char| !it.is_ascii_alphanumeric());
    let says_nothing = |word: &&str| {
        let word = word.to_ascii_lowercase();
        let version = word.strip_prefix('v').unwrap_or(&word);
        let is_version = version.bytes().all(|it| it.is_ascii_digit());
        is_version || ["api", "openapi", "rest", "http", "the", "public"].contains(&&*word)
    };
    let telling: Vec<_> = all.filter(|it| !says_nothing(it)).collect();
    let mut name = joined(&telling, LONGEST_TOOLKIT);
    if !name.starts_with(|it: char| it.is_ascii_alphabetic()) {
        name.insert_str(0, "Api");
        name.truncate(LONGEST_TOOLKIT);
    }
    name
}

/// Returns the name of an operation's tool within its toolkit: `IssuesListForRepo` for
/// `issues/list-for-repo`.
///
/// A name that is too long ends with a hash of the whole, so it does not depend on other operations.
pub(crate) fn tool_of(toolkit: &str, operation: &str) -> String {
    let words = words_of(operation);
    let whole = joined(&words, usize::MAX);
    let longest = LONGEST_NAME.saturating_sub(toolkit.len() + 1).max(16);
    if whole.len() <= longest {
        return whole;
    }
    let hash = hex(&Sha256::digest(operation)[..4]);
    format!("{}_{}", joined(&words, longest - 8), &hash[..7])
}

/// Returns an operation's id without the path and the method that frameworks such as FastAPI add to
/// the name of a function: `read_item` for `read_item_items__item_id__get`.
pub(crate) fn function_in<'a>(id: &'a str, path: &str, summary: &str) -> &'a str {
    // Litestar joins the words of the path and of the function, which are also the summary.
    let words = summary.replace(' ', "");
    let place = id.strip_suffix(&*words).filter(|_| !words.is_empty());
    let place = place.unwrap_or_default();
    let path_words = path.trim_start_matches('/');
    let first = path_words.split(|it: char| !it.is_alphanumeric()).next();
    let begins = |it: &str| place.to_lowercase().starts_with(&it.to_lowercase());
    if !place.is_empty() && first.is_some_and(begins) {
        return &id[place.len()..];
    }
    let path = path.replace(|it: char| !it.is_alphanumeric(), "_");
    let name = id.rsplit_once('_').and_then(|(start, method)| {
        let is_method = METHODS.iter().any(|it| it.to_ascii_lowercase() == method);
        start.strip_suffix(&*path).filter(|_| is_method)
    });
    name.filter(|it| !it.is_empty()).unwrap_or(id)
}

/// Returns a different name for each operation, of the names that it may have, the best first: the
/// first one that no other operation may have, or else its first one with a number.
pub(crate) fn distinct(toolkit: &str, all: &[Vec<String>]) -> Vec<String> {
    // A dot, an underscore and three digits.
    let longest = LONGEST_NAME.saturating_sub(toolkit.len() + 5);
    let key = |name: &String| name.to_ascii_lowercase();
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for names in all {
        let names: BTreeSet<_> = names.iter().map(key).collect();
        for name in names {
            *uses.entry(name).or_default() += 1;
        }
    }
    let mut taken = BTreeSet::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let of = |names: &Vec<String>| {
        let own = names.iter().find(|it| uses[&key(it)] == 1);
        let first = own.or(names.first()).cloned().unwrap_or_default();
        let start = first[..first.len().min(longest)].to_owned();
        let last = numbers.entry(key(&start)).or_insert(1);
        let numbered = std::iter::repeat_with(|| {
            *last += 1;
            format!("{start}_{last}")
        });
        let mut candidates = [first].into_iter().chain(numbered);
        let is_free = |it: &String| taken.insert(key(it));
        candidates.find(is_free).expect("numbers do not end")
    };
    all.iter().map(of).collect()
}

/// Returns the parameter that models see for a name of the document: `filter_id` for `filter[id]`.
pub(crate) fn key_of(name: &str) -> String {
    let name = name.replace('<', "_before").replace('>', "_after");
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
    let mut key = name.replace(|it| !is_allowed(it), "_");
    if key != name {
        let keeps_empty = name.contains("__");
        let words = key.split('_').filter(|it| keeps_empty || !it.is_empty());
        let words: Vec<_> = words.collect();
        words.join("_").trim_matches('_').clone_into(&mut key);
    }
    if !key.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_') {
        key.insert(0, '_');
    }
    key.truncate(LONGEST_KEY);
    key
}

/// Returns as many of the words as fit, in CamelCase.
fn joined(words: &[&str], longest: usize) -> String {
    let mut name = String::new();
    for word in words {
        if name.len() + word.len() > longest {
            break;
        }
        let (first, rest) = word.split_at(1);
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    if name.is_empty() {
        let word = words.first().copied().unwrap_or_default();
        return word.chars().take(longest).collect();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_ids() {
        for row in [
            "cancel_v2_orders__order_id__cancel_post /v2/orders/{order_id}/cancel cancel",
            "root__get / root",
            "_items_get /items _items_get",
            "read_items_fetch /items read_items_fetch",
            "read_items_get /item read_items_get",
        ] {
            let (operation, function) = row.rsplit_once(' ').unwrap();
            let (id, path) = operation.split_once(' ').unwrap();
            assert_eq!(function_in(id, path, "Read Item"), function);
        }
        let list = "ItemsItemIdGetItem";
        assert_eq!(function_in(list, "/items/{item_id}", "Get Item"), "GetItem");
        assert_eq!(function_in(list, "/shop", "Get Item"), list);
        assert_eq!(function_in(list, "/items", "Items Item Id Get Item"), list);
    }

    #[test]
    fn names_of_tools_fit_every_api_of_a_model() {
        for (operation, name) in [
            ("issues/list-for-repo", "IssuesListForRepo"),
            ("getFile", "GetFile"),
            ("list_your_guilds", "ListYourGuilds"),
            ("options_files_content", "OptionsFilesContent"),
            ("GET /pets/{petId}", "GETPetsPetId"),
            ("héllo wörld", "HLloWRld"),
        ] {
            assert_eq!(tool_of("T", operation), name);
        }
        let long =
            "code-security/list-a-very-long-name-of-an-operation-that-never-ends-for-repositories";
        let name = tool_of("GitHub", long);
        assert!(name.len() + 7 <= LONGEST_NAME, "{name}");
        assert!(name.starts_with("CodeSecurityListAVeryLongName"), "{name}");
        assert_ne!(name, tool_of("GitHub", &format!("{long}-x")));
        assert_eq!(toolkit_of("GitHub v3 REST API"), "GitHub");
        assert_eq!(toolkit_of("Redocly Museum API"), "RedoclyMuseum");
        assert_eq!(toolkit_of("3D"), "Api3D");
        assert_eq!(toolkit_of("API"), "Api");
    }

    #[test]
    fn keys_fit_every_api_of_a_model() {
        for (name, key) in [
            ("include[]", "include"),
            ("filter[id]", "filter_id"),
            ("StartTime<", "StartTime_before"),
            ("StartTime>", "StartTime_after"),
            ("$top", "top"),
            ("_id", "_id"),
            ("a.b", "a_b"),
            ("2fa", "_2fa"),
            ("", "_"),
        ] {
            assert_eq!(key_of(name), key, "{name}");
        }
        assert_eq!(key_of(&"x".repeat(100)).len(), LONGEST_KEY);
    }
}
