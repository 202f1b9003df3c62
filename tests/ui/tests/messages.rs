//! The compiler's messages about the usual mistakes: each points at the author's line and says what
//! to do.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("cases/*.rs");
}
