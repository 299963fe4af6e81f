//! Tests of `usage`.

use super::*;
use crate::COLLECTIONS;

#[tokio::test]
async fn what_several_servers_counted_is_added_up_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), COLLECTIONS).unwrap();
    let (one, other) = (Usage::default(), Usage::default());
    let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    one.save(&store, Time(1)).await.unwrap();
    assert!(
        store
            .get::<Counts>(INSTALLATION_PROJECT, RECORD_ID)
            .await
            .unwrap()
            .is_none(),
        "nothing was counted"
    );
    for usage in [&one, &other, &one] {
        usage.count(&a, 1);
        usage.save(&store, Time(2)).await.unwrap();
        usage.save(&store, Time(3)).await.unwrap();
    }
    other.count(&b, 1);
    other.save(&store, Time(4)).await.unwrap();
    let counts = store
        .get::<Counts>(INSTALLATION_PROJECT, RECORD_ID)
        .await
        .unwrap()
        .unwrap()
        .body;
    assert_eq!(
        (counts.get("a"), counts.get("b"), counts.get("c")),
        (3, 1, 0)
    );
}
