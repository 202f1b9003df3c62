//! Tests of the library from outside: what its users write, and what goes over the wire.

mod answers;
mod any_input;
mod authentication;
mod authoring;
mod local;
mod support;
mod validation;
