//! Random batches and queries, compared with the reference.

use crate::model::Model;
use crate::suite::{Note, Place, THINGS_COLLECTION, Thing, whole};
use host_store::{
    Batch, Cursor, Document, Order, Predicate, Query, Record, RecordPage, Row, Scalar, Store, Time,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;

/// A step before its revision is known.
#[derive(Clone, Debug)]
enum Plan {
    Insert(Thing),
    Update(Thing),
    Remove,
    Purge,
    Check,
    Note(usize),
}

#[derive(Clone, Debug)]
struct Planned {
    id: usize,
    project: usize,
    /// True if the step uses a revision one too low.
    stale: bool,
    plan: Plan,
}

const DRAWN_PROJECTS: [&str; 2] = ["p", "p\u{0}"];

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,2}", "[a\u{0}\u{ff}\u{10ffff}]{0,3}"]
}

fn thing() -> impl Strategy<Value = Thing> {
    (
        of(text()),
        of("[rgb]"),
        of(-2_i64..3),
        of(0_i64..4),
        vec("[xyz]{1,2}", 0..4),
        any::<bool>(),
        0_usize..3,
    )
        .prop_map(|(name, colour, rank, due, tags, on, size)| Thing {
            name,
            colour,
            rank,
            due,
            tags,
            on,
            rest: "r".repeat(size * 5_000),
        })
}

fn planned() -> impl Strategy<Value = Planned> {
    let plan = prop_oneof![
        4 => thing().prop_map(Plan::Insert),
        3 => thing().prop_map(Plan::Update),
        1 => Just(Plan::Remove),
        1 => Just(Plan::Purge),
        1 => Just(Plan::Check),
        1 => (0_usize..20_000).prop_map(Plan::Note),
    ];
    (0_usize..16, 0_usize..2, prop::bool::weighted(0.05), plan).prop_map(
        |(id, project, stale, plan)| Planned {
            id,
            project,
            stale,
            plan,
        },
    )
}

fn test() -> impl Strategy<Value = (String, Predicate)> {
    let scalar = || {
        let words = prop_oneof![
            text(),
            "[rgb]",
            "[xyz]{1,2}",
            Just("true".to_owned()),
            "t[0-9]",
            Just("p".to_owned())
        ];
        prop_oneof![
            words.prop_map(Scalar::Text),
            (-2_i64..20).prop_map(Scalar::Int)
        ]
    };
    let simple = prop_oneof![
        4 => scalar().prop_map(Predicate::Equals),
        2 => vec(scalar(), 0..5).prop_map(Predicate::AnyOf),
        2 => prop_oneof![text(), "[xyz]"].prop_map(Predicate::Contains),
        2 => (-3_i64..20).prop_map(Predicate::AtLeast),
        2 => (-3_i64..20).prop_map(Predicate::Below),
    ];
    let test = prop_oneof![4 => simple.clone(), 1 => simple.prop_map(|test| Predicate::Not(Box::new(test)))];
    let fields = THINGS_COLLECTION
        .fields
        .iter()
        .map(|field| field.name)
        .chain(["id", "project", "created_at", "updated_at"]);
    (
        prop::sample::select(fields.collect::<Vec<_>>()).prop_map(str::to_owned),
        test,
    )
}

/// A position in the order of a list by a field. In most cases it is not the position of a record.
fn mark(field: Option<&str>) -> BoxedStrategy<Cursor> {
    let value = match field {
        None => Just(None).boxed(),
        Some("rank" | "due") => of((-2_i64..4).prop_map(Scalar::Int)).boxed(),
        Some("on") => of(any::<bool>().prop_map(Scalar::from)).boxed(),
        Some(_) => of(prop_oneof![text(), "[rgb]"].prop_map(Scalar::Text)).boxed(),
    };
    let id = prop_oneof!["t[0-9]{1,2}(-[0-9]{1,3})?", text()];
    (value, 0_i64..20, id)
        .prop_map(|(value, at, id)| Cursor {
            value,
            created_at: Time(at),
            id,
        })
        .boxed()
}

pub(crate) fn query() -> impl Strategy<Value = Query> {
    let field = of(prop::sample::select(vec![
        "name", "colour", "rank", "due", "on",
    ]));
    let order = field.prop_flat_map(|field| {
        (
            Just(field.map(str::to_owned)),
            any::<bool>(),
            of(mark(field)),
        )
    });
    let page = prop_oneof![Just((0, u64::MAX)), (0_u64..20, 0_u64..6)];
    (
        of(prop::sample::select(DRAWN_PROJECTS.to_vec())),
        vec(test(), 0..4),
        order,
        page,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(project, tests, (field, descending, after), (offset, limit), deleted, counted)| {
                let query = tests
                    .into_iter()
                    .fold(Query::all_projects(), |query, (field, test)| {
                        query.test(&field, test)
                    });
                let order = Order { field, descending };
                Query {
                    project: project.map(str::to_owned),
                    order,
                    after,
                    offset,
                    limit,
                    deleted,
                    counted,
                    ..query
                }
            },
        )
}

fn batch(model: &Model, now: i64, plans: &[Planned]) -> Batch {
    let mut batch = Batch::at(Time(now));
    let mut named = std::collections::HashSet::new();
    for Planned {
        id,
        project,
        stale,
        plan,
    } in plans
    {
        let id = format!("t{id}");
        let project = DRAWN_PROJECTS[*project];
        if !named.insert((matches!(plan, Plan::Note(_)), id.clone())) {
            continue;
        }
        let known = model.get(&THINGS_COLLECTION, &id);
        let (revision, owner) = known.map_or((0, project.to_owned()), |row| {
            (row.revision, row.project.clone())
        });
        let created_at = Time(0);
        let updated_at = Time(0);
        let record = |body: Thing| Record {
            id: id.clone(),
            project: owner.clone(),
            revision: revision - i64::from(*stale),
            created_at,
            updated_at,
            deleted_at: None,
            body,
        };
        batch = match plan {
            Plan::Insert(body) => batch.insert_created(Time(now / 2), project, &id, body),
            Plan::Update(body) => batch.update(&record(body.clone())),
            Plan::Remove => batch.remove(&record(Thing::default())),
            Plan::Purge => batch.purge(&record(Thing::default())),
            Plan::Check => batch.check(&record(Thing::default())),
            Plan::Note(size) => batch.insert(
                project,
                &id,
                &Note {
                    text: "n".repeat(*size),
                },
            ),
        };
    }
    batch
}

fn typed<T: Document>(row: Row) -> Record<T> {
    let body = serde_json::from_slice(&row.body).unwrap();
    row.map(|_| body)
}

async fn compare<T: Document + PartialEq + std::fmt::Debug>(
    store: &Store,
    model: &Model,
    query: &Query,
) {
    let page = model.find(T::COLLECTION, query);
    let found = store.find::<T>(query).await.unwrap();
    let expected = RecordPage {
        total: page.total,
        records: page.rows.into_iter().map(typed::<T>).collect(),
    };
    let ids = |found: &RecordPage<T>| {
        found
            .records
            .iter()
            .map(|record| record.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (found.total, ids(&found)),
        (expected.total, ids(&expected)),
        "{query:?}"
    );
    assert!(
        found == expected,
        "{query:?} answers with the right records, but not as they are"
    );
}

/// Compares the counts by color, with an absent color among the values.
async fn compare_counts(store: &Store, model: &Model, query: &Query) {
    let values = ["r", "g", "b", "none"];
    let counts = store
        .count_by::<Thing>(query, "colour", &values)
        .await
        .unwrap();
    let counted = Query {
        counted: true,
        ..query.clone()
    };
    for value in values {
        let expected = counted.clone().is("colour", value);
        let expected = model.find(&THINGS_COLLECTION, &expected).total;
        let found = counts.get(value).copied().unwrap_or_default();
        assert_eq!(found, expected, "{value} in {query:?}");
    }
}

pub(crate) fn random_batches_and_queries_match_the_reference<P: Place>() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let plans = vec((vec(planned(), 1..5), vec(query(), 3)), 1..50);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 12,
        max_shrink_iters: 40,
        ..ProptestConfig::default()
    });
    let result = runner.run(&plans, |rounds| {
        runtime.block_on(async {
            let place = P::new();
            let mut store = place.open().await;
            let mut model = Model::default();
            let half = rounds.len() / 2;
            for (round, (plans, queries)) in rounds.into_iter().enumerate() {
                let batch = batch(&model, round as i64, &plans);
                assert_eq!(
                    store.commit(batch.clone()).await,
                    model.commit(&batch),
                    "{batch:?}"
                );
                for query in &queries {
                    compare::<Thing>(&store, &model, query).await;
                    compare_counts(&store, &model, query).await;
                }
                if round == half {
                    store = whole(&place, store).await;
                }
            }
            compare::<Thing>(&store, &model, &Query::all_projects().with_deleted()).await;
            compare::<Thing>(&store, &model, &Query::all_projects().only_deleted()).await;
            compare::<Note>(&store, &model, &Query::all_projects().with_deleted()).await;
            whole(&place, store).await;
        });
        Ok(())
    });
    result.unwrap();
}

/// Uses enough records that conditions are settled by intersecting index keys, not by reading the
/// candidates.
pub(crate) async fn queries_over_many_records_match_the_reference(place: impl Place) {
    let store = place.open().await;
    let mut model = Model::default();
    let mut runner = TestRunner::deterministic();
    for step in 0..10_i64 {
        let mut batch = Batch::at(Time(step));
        for n in 0..250_i64 {
            let mut body = thing().new_tree(&mut runner).unwrap().current();
            (body.name, body.rest) = (None, Value::from(n).to_string());
            batch = batch.insert_created(
                Time(n % 20),
                DRAWN_PROJECTS[usize::from(n % 9 == 0)],
                &format!("t{step}-{n}"),
                &body,
            );
        }
        model.commit(&batch).unwrap();
        store.commit(batch).await.unwrap();
    }
    let every = store
        .find::<Thing>(&Query::for_project("p").is("colour", "r").page(0, 40))
        .await
        .unwrap();
    let removal = every
        .records
        .iter()
        .fold(Batch::at(Time(99)), |batch, record| batch.remove(record));
    model.commit(&removal).unwrap();
    store.commit(removal).await.unwrap();
    for _ in 0..300 {
        let query = query().new_tree(&mut runner).unwrap().current();
        compare::<Thing>(&store, &model, &query).await;
        compare_counts(&store, &model, &query).await;
    }
    whole(&place, store).await;
}
