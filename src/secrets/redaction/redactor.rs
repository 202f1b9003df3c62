//! The forms of one secret, kept together.
//!
//! A process keeps the forms of up to a thousand secrets, and replaces them one by one. If each form
//! had its own memory, tens of thousands of small allocations would lie between larger ones, and
//! the allocator could not return the memory of a large request to the system after its end.

use std::borrow::Cow;

use secrecy::zeroize::Zeroizing;

use super::{
    PLACEHOLDER,
    forms::{EncodedForm, forms_of},
    spelled::{HEAD, head_of},
};

/// The forms of one secret, and the text that replaces them. They are created only once, because
/// there are many.
pub(crate) struct Redactor {
    pub(super) placeholder: Cow<'static, str>,
    /// The texts of all forms, one after another.
    texts: Zeroizing<Vec<u8>>,
    forms: Box<[FormInTexts]>,
}

/// A form whose text is a part of the texts.
struct FormInTexts {
    start: usize,
    end: usize,
    takes_before: bool,
    takes_after: bool,
}

/// A form to search for.
#[derive(Clone, Copy)]
pub(super) struct Form<'r> {
    pub(super) text: &'r [u8],
    /// True if the character before the form holds bits of the secret.
    pub(super) takes_before: bool,
    /// True if the character after the form holds bits of the secret. Padding may follow it.
    pub(super) takes_after: bool,
}

impl Form<'_> {
    /// No form is shorter than a head.
    pub(super) fn head(self) -> u64 {
        head_of(&self.text[..HEAD])
    }
}

impl Redactor {
    /// A secret that is shorter than `shortest` has no forms, and so is not redacted.
    pub(crate) fn new(secret: &str, shortest: usize) -> Self {
        Self::with_placeholder(secret, shortest, PLACEHOLDER)
    }

    pub(crate) fn with_placeholder(
        secret: &str,
        shortest: usize,
        placeholder: impl Into<Cow<'static, str>>,
    ) -> Self {
        let forms = forms_of(secret, shortest.max(HEAD));
        let length = forms.iter().map(|form| form.text.len()).sum();
        // Never grows: a copy that is left behind would not be overwritten.
        let mut texts = Zeroizing::new(Vec::with_capacity(length));
        let add = |form: &EncodedForm| {
            let start = texts.len();
            texts.extend_from_slice(&form.text);
            FormInTexts {
                start,
                end: texts.len(),
                takes_before: form.takes_before,
                takes_after: form.takes_after,
            }
        };
        let forms = forms.iter().map(add).collect();
        Self {
            placeholder: placeholder.into(),
            texts,
            forms,
        }
    }

    pub(super) fn forms(&self) -> impl Iterator<Item = Form<'_>> {
        (0..self.forms.len()).map(|number| self.form(number))
    }

    pub(super) fn form(&self, number: usize) -> Form<'_> {
        let form = &self.forms[number];
        Form {
            text: &self.texts[form.start..form.end],
            takes_before: form.takes_before,
            takes_after: form.takes_after,
        }
    }

    #[cfg(test)]
    pub(super) fn capacity_of_texts(&self) -> usize {
        self.texts.capacity()
    }

    /// The approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        /// The overhead of a form besides its text, in the redactor and in the index.
        const OVERHEAD: usize = 96;
        self.texts.len() + self.forms.len() * OVERHEAD
    }
}
