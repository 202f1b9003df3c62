//! The forms of any number of secrets, by the bytes with which they begin.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, RandomState},
    slice,
    sync::Arc,
};

use super::redactor::{Form, Redactor};

/// The forms by a hash of their first bytes. The hash is keyed, so that it reveals nothing about
/// them.
#[derive(Default)]
pub(super) struct Index {
    terms: HashMap<u64, SearchTerms>,
    hasher: RandomState,
}

/// A form: a secret's redactor, and the form's number there.
#[derive(Clone)]
struct SearchTerm {
    redactor: Arc<Redactor>,
    number: usize,
}

/// The forms with one hash. Most begin like no other, and need no memory besides that of the table.
enum SearchTerms {
    One(SearchTerm),
    Several(Vec<SearchTerm>),
}

impl SearchTerms {
    fn as_slice(&self) -> &[SearchTerm] {
        match self {
            Self::One(term) => slice::from_ref(term),
            Self::Several(terms) => terms,
        }
    }

    fn push(&mut self, term: SearchTerm) {
        match self {
            Self::One(first) => *self = Self::Several(vec![first.clone(), term]),
            Self::Several(terms) => terms.push(term),
        }
    }

    /// Removes the forms of one secret. True if no others remain.
    fn remove(&mut self, redactor: &Arc<Redactor>) -> bool {
        let is_removed = |term: &SearchTerm| Arc::ptr_eq(&term.redactor, redactor);
        match self {
            Self::One(term) => is_removed(term),
            Self::Several(terms) => {
                terms.retain(|term| !is_removed(term));
                terms.is_empty()
            }
        }
    }
}

impl Index {
    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub(super) fn add(&mut self, redactor: &Arc<Redactor>) {
        for (number, form) in redactor.forms().enumerate() {
            let term = SearchTerm {
                redactor: Arc::clone(redactor),
                number,
            };
            match self.terms.entry(self.hasher.hash_one(form.head())) {
                Entry::Vacant(entry) => drop(entry.insert(SearchTerms::One(term))),
                Entry::Occupied(mut entry) => entry.get_mut().push(term),
            }
        }
    }

    pub(super) fn remove(&mut self, redactor: &Arc<Redactor>) {
        for form in redactor.forms() {
            let entry = self.terms.entry(self.hasher.hash_one(form.head()));
            if let Entry::Occupied(mut entry) = entry
                && entry.get_mut().remove(redactor)
            {
                entry.remove();
            }
        }
    }

    /// The forms that may begin with these bytes, and their placeholders.
    pub(super) fn get(&self, head: u64) -> impl Iterator<Item = (Form<'_>, &str)> {
        let terms = self.terms.get(&self.hasher.hash_one(head));
        terms.into_iter().flat_map(with_placeholders)
    }

    pub(super) fn forms(&self) -> impl Iterator<Item = Form<'_>> {
        let forms = self.terms.values().flat_map(with_placeholders);
        forms.map(|(form, _)| form)
    }
}

fn with_placeholders(terms: &SearchTerms) -> impl Iterator<Item = (Form<'_>, &str)> {
    let terms = terms.as_slice().iter();
    terms.map(|term| {
        let form = term.redactor.form(term.number);
        (form, &*term.redactor.placeholder)
    })
}
