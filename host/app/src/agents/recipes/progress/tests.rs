//! Tests of `progress`.

use super::*;

fn steps(names: &[&str]) -> Vec<Step> {
    let named = names.iter().map(|name| Step {
        name: (*name).to_owned(),
        ..Step::default()
    });
    named.collect()
}

#[test]
fn place_belongs_to_a_step_of_the_recipe() {
    let steps = steps(&["a", "ab", "b"]);
    for (place, index) in [
        (None, 0),
        (Some("a"), 0),
        (Some("ab[3].a"), 1),
        (Some("b.ab"), 2),
    ] {
        assert_eq!(index_of(&steps, place), index, "{place:?}");
    }
}
