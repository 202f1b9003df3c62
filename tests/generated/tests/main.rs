//! The tests of generated projects.

mod projects;
mod terminal;
