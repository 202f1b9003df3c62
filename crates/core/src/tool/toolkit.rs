//! The tools of one server: built once, then listed and resolved.
//!
//! A toolkit that was built is valid: whatever can be wrong with a definition is reported when it
//! is built, all of it at once, so that nobody fixes one mistake only to meet the next.

mod mistakes;

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use semver::Version;
use serde_json::{Value, json};

pub use self::mistakes::BuildError;
use self::mistakes::{has_plain_id, is_name, mistakes_in, mistakes_in_other, problem};
use super::{
    definition::name_of,
    id::Selector,
    parts::ToolParts,
    resource::{self, Prompt, Resource},
};
use crate::{Tool, ToolDefinition, ToolId};

/// A set of tools served together.
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use lambda_tools::{Failure, Tool, Toolkit};
///
/// /// Says hello.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {}
///
/// async fn greet(_: Greet) -> Result<String, Failure> {
///     Ok("Hello!".into())
/// }
///
/// let toolkit = Toolkit::new([Tool::new("Hello.Greet@1.0.0", greet)])?;
/// assert_eq!(toolkit.definitions()[0].description, "Says hello.");
///
/// let mistake = Toolkit::new([Tool::new("Hello.Greet", greet)]).unwrap_err();
/// assert!(mistake.to_string().contains("Toolkit.Tool@1.0.0"));
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
pub struct Toolkit {
    entries: Vec<ToolEntry>,
    /// The versions of each `Toolkit.Tool`, the newest first, by their places in `entries`.
    versions: HashMap<Arc<str>, Vec<usize>>,
    /// The resources and the prompts: of a resource, the URI or the template, too.
    others: Vec<(Option<Cow<'static, str>>, ToolEntry)>,
}

/// A tool and its id, shared with its calls, which may outlive their requests.
#[derive(Clone)]
pub struct ToolEntry {
    /// The tool's id.
    pub id: ToolId,
    /// The tool.
    pub tool: Arc<ToolParts>,
}

/// The reason why a selector matches no tool.
#[derive(Debug, PartialEq, Eq)]
pub enum ToolNotFound {
    /// No tool has the name.
    Tool {
        /// The most similar name of a tool.
        closest: Option<String>,
    },
    /// The tool has no such version.
    Version {
        /// The version that was requested.
        version: Version,
        /// The versions of the tool, the oldest first.
        available: Vec<Version>,
    },
}

impl Toolkit {
    /// Combines tools, which may include several versions of one tool.
    ///
    /// # Errors
    /// All mistakes in all definitions: invalid ids, an id registered twice, two tools with the
    /// same name, missing descriptions, inputs that are not objects, recursive types.
    ///
    /// Ids and names are always checked. Schemas are checked where debug assertions are on
    /// (`cargo test`, `cargo run`) and by `lambda_tools::serve` outside of Lambda, so that a
    /// cold start does not repeat the checks made before deployment; [`Toolkit::check`] checks them
    /// on demand.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Result<Self, BuildError> {
        let mut problems = Vec::new();
        let tools = tools.into_iter().map(|tool| tool.0);
        let count = tools.size_hint().0;
        let mut toolkit = Self {
            entries: Vec::with_capacity(count),
            versions: HashMap::with_capacity(count),
            others: Vec::new(),
        };
        for tool in tools {
            if cfg!(debug_assertions) {
                problems.extend(mistakes_in(&tool).iter().map(|text| problem(&tool, text)));
            }
            match tool.id.parse() {
                Ok(id) => toolkit.add(id, tool, &mut problems),
                Err(error) => problems.push(problem(&tool, &format!("{error}"))),
            }
        }
        toolkit.check_names(&mut problems);
        BuildError::unless_empty(problems).map(|()| toolkit)
    }

    /// Adds resources.
    ///
    /// # Errors
    /// All mistakes in all of them: those of tools, invalid URIs, a URI that occurs twice, and parameters
    /// that are not the variables of the URI.
    pub fn resources(
        self,
        resources: impl IntoIterator<Item = Resource>,
    ) -> Result<Self, BuildError> {
        let resources = resources.into_iter();
        self.with_others(resources.map(|it| (Some(it.uri), it.tool.0)))
    }

    /// Adds prompts.
    ///
    /// # Errors
    /// All mistakes in all of them: those of tools, and a name that occurs twice.
    pub fn prompts(self, prompts: impl IntoIterator<Item = Prompt>) -> Result<Self, BuildError> {
        self.with_others(prompts.into_iter().map(|it| (None, it.0.0)))
    }

    fn with_others(
        mut self,
        others: impl Iterator<Item = (Option<Cow<'static, str>>, Arc<ToolParts>)>,
    ) -> Result<Self, BuildError> {
        let mut problems = Vec::new();
        for (uri, tool) in others {
            let mut mistakes = Vec::new();
            if cfg!(debug_assertions) {
                mistakes = mistakes_in_other(uri.as_deref(), &tool);
            }
            let is_same = |(other, entry): &(Option<Cow<'static, str>>, ToolEntry)| {
                entry.tool.id == tool.id || uri.is_some() && *other == uri
            };
            if self.others.iter().any(is_same) {
                mistakes.push("another one has its name or its URI".to_owned());
            }
            match tool.id.parse() {
                Ok(id) => {
                    let tool = Arc::clone(&tool);
                    self.others.push((uri, ToolEntry { id, tool }));
                }
                Err(_) => {
                    mistakes.push("its name must be letters, digits and underscores".to_owned());
                }
            }
            problems.extend(mistakes.iter().map(|text| problem(&tool, text)));
        }
        BuildError::unless_empty(problems).map(|()| self)
    }

    /// Returns the resources, each with its URI or the template of its URIs.
    pub fn resources_with_uris(&self) -> impl Iterator<Item = (&str, &ToolEntry)> {
        let others = self.others.iter();
        others.filter_map(|(uri, entry)| Some((uri.as_deref()?, entry)))
    }

    /// Returns the prompts.
    pub fn prompt_entries(&self) -> impl Iterator<Item = &ToolEntry> {
        let prompts = self.others.iter().filter(|(uri, _)| uri.is_none());
        prompts.map(|(_, entry)| entry)
    }

    /// Returns the resource with this URI, and the input of its function.
    pub fn resource(&self, uri: &str) -> Option<(&ToolEntry, Value)> {
        let mut all = self.resources_with_uris();
        let is_it = |(it, _): &(&str, _)| *it == uri && !it.contains('{');
        if let Some((_, entry)) = all.find(is_it) {
            return Some((entry, json!({})));
        }
        let mut all = self.resources_with_uris();
        all.find_map(|(template, entry)| Some((entry, resource::values_in(template, uri)?.into())))
    }

    /// Returns the tools, the resources and the prompts.
    pub fn all(&self) -> impl Iterator<Item = &ToolEntry> {
        let others = self.others.iter().map(|(_, entry)| entry);
        self.entries.iter().chain(others)
    }

    /// Checks every definition, schemas included, in any build. A valid but rarely intended
    /// definition is logged as a warning: a tool with [`authorization`](Tool::authorization) but
    /// without [`user_id`](Tool::user_id).
    ///
    /// In a program that depends on `lambda_tools_core` alone, only its Cargo feature `validation`
    /// finds schemas that are not valid JSON Schemas.
    ///
    /// # Errors
    /// All mistakes in all definitions.
    pub fn check(&self) -> Result<(), BuildError> {
        for entry in self.all() {
            let requirements = &entry.tool.requirements;
            if !requirements.authorization.is_empty() && !requirements.user_id {
                tracing::warn!(
                    target: "lambda_tools::tool",
                    tool = %entry.id,
                    "the tool needs a user's token but does not require the user; without \
                     .user_id(), a repeated call is identified by its token, and a refreshed \
                     token makes it a new call"
                );
            }
        }
        let of_tools = self
            .entries
            .iter()
            .map(|it| (&it.tool, mistakes_in(&it.tool)));
        let others = self.others.iter();
        let of_others =
            others.map(|(uri, it)| (&it.tool, mistakes_in_other(uri.as_deref(), &it.tool)));
        let problems = of_tools.chain(of_others).flat_map(|(tool, mistakes)| {
            let mistakes = mistakes.into_iter();
            mistakes.map(|text| problem(tool, &text))
        });
        BuildError::unless_empty(problems.collect())
    }

    /// Returns the tools as `GET /tools` describes them, in the order of registration.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let definition = |entry: &ToolEntry| ToolDefinition::of(&entry.id, &entry.tool);
        self.entries.iter().map(definition).collect()
    }

    /// Returns the tools with their ids, in the order of registration.
    pub fn entries(&self) -> &[ToolEntry] {
        &self.entries
    }

    /// Finds a tool: OXP 1.0, Tool Version Resolution. The error names only tools that `is_listed`.
    pub fn resolve(
        &self,
        selector: &Selector,
        is_listed: impl Fn(&ToolEntry) -> bool,
    ) -> Result<ToolEntry, ToolNotFound> {
        let Some(versions) = self.versions.get(&selector.qualified) else {
            let closest = self.closest(&selector.qualified, is_listed);
            return Err(ToolNotFound::Tool { closest });
        };
        let Some(version) = &selector.version else {
            return Ok(self.entries[versions[0]].clone());
        };
        let mut entries = versions.iter().map(|index| &self.entries[*index]);
        if let Some(entry) = entries.find(|it| it.id.version() == version) {
            return Ok(entry.clone());
        }
        let entries = versions.iter().rev().map(|index| &self.entries[*index]);
        let listed = entries.filter(|it| is_listed(it));
        Err(ToolNotFound::Version {
            version: version.clone(),
            available: listed.map(|it| it.id.version().clone()).collect(),
        })
    }

    fn closest(&self, qualified: &str, is_listed: impl Fn(&ToolEntry) -> bool) -> Option<String> {
        let tools = self.versions.iter();
        let listed = tools.filter(|(_, versions)| is_listed(&self.entries[versions[0]]));
        let names = listed.map(|(name, _)| &**name);
        closest_name(qualified, names, self.versions.len(), '.')
    }

    /// Returns the newest version of each tool, in the order of registration.
    pub fn newest(&self) -> impl Iterator<Item = &ToolEntry> {
        let entries = self.entries.iter().enumerate();
        let newest = entries.filter(|(at, entry)| self.versions[entry.id.qualified()][0] == *at);
        newest.map(|(_, entry)| entry)
    }

    fn add(&mut self, id: ToolId, tool: Arc<ToolParts>, problems: &mut Vec<String>) {
        let versions = self.versions.entry(id.shared()).or_default();
        let version_of = |index: &usize| self.entries[*index].id.version();
        match versions.binary_search_by(|it| id.version().cmp(version_of(it))) {
            Ok(place) => {
                let first = self.entries[versions[place]].tool.defined_at;
                let text = format!("this id and version is already registered at {first}");
                problems.push(problem(&tool, &text));
            }
            Err(place) => {
                versions.insert(place, self.entries.len());
                self.entries.push(ToolEntry { id, tool });
            }
        }
    }

    /// Checks that no two tools have the same name, by which models call them.
    fn check_names(&self, problems: &mut Vec<String>) {
        // Of `A.B`, the name is `A_B`: if this is so for all, they are as unique as the ids.
        let mut entries = self.entries.iter();
        if entries.all(|it| it.tool.name.is_none() && has_plain_id(it)) {
            return;
        }
        let mut owners: HashMap<String, &ToolEntry> = HashMap::with_capacity(self.entries.len());
        for entry in &self.entries {
            let name = name_of(&entry.id, &entry.tool);
            if !is_name(&name) {
                let text = "its name must be 1 to 64 letters, digits, underscores or dashes; \
                            set one with .name(…)";
                problems.push(problem(&entry.tool, text));
            }
            let owner = *owners.entry(name).or_insert(entry);
            if owner.id.qualified() != entry.id.qualified() {
                let text = format!("{} has the same name; set another with .name(…)", owner.id);
                problems.push(problem(&entry.tool, &text));
            }
        }
    }
}

impl fmt::Debug for Toolkit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.entries.iter().map(|entry| entry.id.to_string());
        f.debug_list().entries(ids).finish()
    }
}

/// Returns the most likely intended name among `count` known ones; `separator` divides toolkit and
/// tool.
pub fn closest_name<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
    count: usize,
    separator: char,
) -> Option<String> {
    // The comparison is quadratic in the length, which the caller chooses, and an unknown id must
    // not cost more than a known one.
    if name.len() > 128 || count > 1000 {
        return None;
    }
    let scored = known.map(|known| (similarity_of_halves(name, known, separator), known));
    scored
        .filter(|(similarity, _)| *similarity >= 0.6)
        .max_by(|(a, x), (b, y)| a.total_cmp(b).then(y.cmp(x)))
        .map(|(_, known)| known.to_owned())
}

/// Returns the similarity of the less similar halves: sharing a toolkit does not make tools
/// similar.
fn similarity_of_halves(one: &str, other: &str, separator: char) -> f64 {
    let similarity = |one: &str, other: &str| {
        if one.eq_ignore_ascii_case(other) {
            return 1.0;
        }
        let (short, long) = (one.len().min(other.len()), one.len().max(other.len()));
        // Less than half as long is never similar.
        if short * 2 < long {
            return 0.0;
        }
        strsim::normalized_damerau_levenshtein(one, other)
    };
    match (one.split_once(separator), other.split_once(separator)) {
        (Some(one), Some(other)) => similarity(one.0, other.0).min(similarity(one.1, other.1)),
        _ => 0.0,
    }
}
