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

#[test]
fn parallel_runs_add_up_and_never_go_back() {
    let progress = Progress::default();
    let mut reader = progress.reader();
    assert_eq!(reader.position(), None);
    let [one, other] = [RecipeRunId::random(), RecipeRunId::random()];
    let (two, three) = (steps(&["a", "b"]), steps(&["a", "b", "c"]));
    progress.report(&one, 1, &two, Some("b".to_owned()));
    progress.report(&other, 0, &three, Some("a".to_owned()));
    progress.report(&one, 0, &two, None);
    let position = |done, total, step: Option<&str>| {
        let step = step.map(str::to_owned);
        Some(Position { done, total, step })
    };
    assert_eq!(reader.position(), position(1, 5, None));
    progress.end(&one, &two);
    progress.report(&other, 2, &three, Some("c".to_owned()));
    assert_eq!(reader.position(), position(4, 5, Some("c")));
}
