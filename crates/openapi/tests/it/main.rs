//! Real documents, requests that outside programs judge, and inputs that try to leave the API.

mod answers;
mod attacks;
mod cases;
mod choices;
mod documents;
mod inputs;
mod long;
mod recorder;
mod tokens;
