//! The guarantees of every blob store, asserted once and run on each of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error it does not expect has failed"
)]

#[path = "../../../tests/harness/bucket.rs"]
#[expect(
    unreachable_pub,
    reason = "the end-to-end tests' library has the same file"
)]
mod bucket;

use bucket::{ACCESS_KEY, BUCKET_NAME, BucketService, SECRET_KEY};
use bytes::Bytes;
use host_store::{Blobs, Bucket, BucketError, BucketSettings, Error, Folder};
use std::path::PathBuf;

/// An empty blob store, with a way to open it again and to find the file of a blob.
trait Place {
    fn new() -> Self;
    fn open(&self) -> Box<dyn Blobs>;
    fn file(&self, key: &str) -> PathBuf;
}

struct InFolder(tempfile::TempDir);

impl Place for InFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Box<dyn Blobs> {
        Box::new(Folder::open(self.0.path()).unwrap())
    }

    fn file(&self, key: &str) -> PathBuf {
        self.0.path().join(key)
    }
}

struct InBucket(BucketService);

fn settings(service: &BucketService) -> BucketSettings {
    BucketSettings {
        bucket: BUCKET_NAME.to_owned(),
        prefix: "some/where".to_owned(),
        endpoint: Some(service.endpoint()),
        region: "us-east-1".to_owned(),
        access_key_id: ACCESS_KEY.to_owned(),
        secret_access_key: SECRET_KEY.to_owned(),
        session_token: None,
        presigned: false,
    }
}

impl Place for InBucket {
    fn new() -> Self {
        Self(BucketService::start())
    }

    fn open(&self) -> Box<dyn Blobs> {
        Box::new(Bucket::new(settings(&self.0)).unwrap())
    }

    fn file(&self, key: &str) -> PathBuf {
        self.0.file(&format!("some/where/{key}"))
    }
}

async fn a_blob_reads_as_it_was_put(place: impl Place) {
    let blobs = place.open();
    for (key, bytes) in [
        ("a", Bytes::new()),
        ("A-b_c.9", Bytes::from(vec![7; 3_000_000])),
    ] {
        assert_eq!(blobs.get(key).await.unwrap(), None);
        blobs.put(key, Bytes::from_static(b"first")).await.unwrap();
        blobs.put(key, bytes.clone()).await.unwrap();
        assert_eq!(place.open().get(key).await.unwrap(), Some(bytes));
    }
    assert_eq!(place.open().keys().await.unwrap(), ["A-b_c.9", "a"]);
    assert_eq!(blobs.verify().await.unwrap(), (2, vec![]));
}

async fn removing_a_blob_twice_is_no_error(place: impl Place) {
    let blobs = place.open();
    blobs.put("a", Bytes::from_static(b"x")).await.unwrap();
    blobs.remove("a").await.unwrap();
    blobs.remove("a").await.unwrap();
    assert_eq!(blobs.get("a").await.unwrap(), None);
    assert_eq!(blobs.keys().await.unwrap(), Vec::<String>::new());
}

async fn what_is_no_key_is_refused(place: impl Place) {
    let blobs = place.open();
    for key in [
        "",
        ".",
        "..",
        ".a",
        "a/b",
        "a\\b",
        "a\0",
        "\u{e9}",
        &"k".repeat(201),
    ] {
        assert!(
            matches!(blobs.put(key, Bytes::new()).await, Err(Error::Key(_))),
            "{key}"
        );
        assert!(matches!(blobs.get(key).await, Err(Error::Key(_))), "{key}");
        assert!(matches!(blobs.size(key).await, Err(Error::Key(_))), "{key}");
        assert!(
            matches!(blobs.remove(key).await, Err(Error::Key(_))),
            "{key}"
        );
    }
}

async fn damaged_blob_fails_get_and_verify(place: impl Place) {
    let blobs = place.open();
    for key in ["whole", "changed", "emptied"] {
        blobs.put(key, vec![7; 10_000].into()).await.unwrap();
    }
    let mut bytes = std::fs::read(place.file("changed")).unwrap();
    bytes[5_000] ^= 1;
    std::fs::write(place.file("changed"), bytes).unwrap();
    std::fs::write(place.file("emptied"), "").unwrap();
    for key in ["changed", "emptied"] {
        assert!(
            matches!(blobs.get(key).await, Err(Error::Damaged { .. })),
            "{key}"
        );
    }
    assert_eq!(
        blobs.verify().await.unwrap(),
        (3, vec!["changed".to_owned(), "emptied".to_owned()])
    );
}

async fn blob_above_the_maximum_is_not_read(place: impl Place) {
    let blobs = place.open();
    assert_eq!(blobs.size("a").await.unwrap(), None);
    assert_eq!(blobs.get_at_most("a", 0).await.unwrap(), None);
    let bytes = Bytes::from(vec![7; 10_000]);
    blobs.put("a", bytes.clone()).await.unwrap();
    assert_eq!(blobs.size("a").await.unwrap(), Some(10_000));
    assert_eq!(blobs.get_at_most("a", 10_000).await.unwrap(), Some(bytes));
    // If these bytes were read, their checksum would be the reason.
    std::fs::write(place.file("a"), vec![1_u8; 20_000]).unwrap();
    for (max_bytes, reason) in [(10_000, "larger"), (20_000, "checksum")] {
        let refused = blobs.get_at_most("a", max_bytes).await.unwrap_err();
        assert!(refused.to_string().contains(reason), "{refused}");
    }
}

macro_rules! promises {
    ($module:ident, $place:ty: $($promise:ident),*) => {
        mod $module {
            use super::Place;
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(<$place as Place>::new()).await;
            })*
        }
    };
    ($($promise:ident),*) => {
        promises!(folder, super::InFolder: $($promise),*);
        promises!(bucket_of_s3, super::InBucket: $($promise),*);
    };
}

promises!(
    a_blob_reads_as_it_was_put,
    removing_a_blob_twice_is_no_error,
    what_is_no_key_is_refused,
    damaged_blob_fails_get_and_verify,
    blob_above_the_maximum_is_not_read
);

#[tokio::test]
async fn object_without_checksum_is_not_trusted() {
    let place = InBucket::new();
    place
        .open()
        .put("a", Bytes::from_static(b"just this"))
        .await
        .unwrap();
    assert_eq!(std::fs::read(place.file("a")).unwrap(), b"just this");
    std::fs::write(place.file("b"), "from elsewhere").unwrap();
    assert!(matches!(
        place.open().get("b").await,
        Err(Error::Damaged { .. })
    ));
}

#[tokio::test]
async fn bucket_errors_name_cause_but_no_secret() {
    let service = BucketService::start();
    let probe = async |change: fn(&mut BucketSettings)| {
        let mut settings = settings(&service);
        change(&mut settings);
        Bucket::new(settings).unwrap().probe().await
    };
    probe(|_| {}).await.unwrap();
    let wrong = probe(|settings| settings.secret_access_key = "another-secret".into())
        .await
        .unwrap_err();
    assert!(matches!(&wrong, BucketError::Refused { .. }), "{wrong:?}");
    assert!(!format!("{wrong} {wrong:?}").contains("another-secret"));
    let missing = probe(|settings| settings.bucket = "elsewhere".into())
        .await
        .unwrap_err();
    assert!(
        matches!(missing, BucketError::Missing { .. }),
        "{missing:?}"
    );
    service.stop();
    let away = probe(|_| {}).await.unwrap_err();
    assert!(matches!(away, BucketError::Unreachable { .. }), "{away:?}");
}

#[tokio::test]
async fn bucket_recovers_after_an_outage() {
    let place = InBucket::new();
    let blobs = place.open();
    blobs.put("a", Bytes::from_static(b"x")).await.unwrap();
    place.0.stop();
    assert!(matches!(blobs.get("a").await, Err(Error::Unavailable(_))));
    assert!(matches!(
        blobs.put("b", Bytes::new()).await,
        Err(Error::Unavailable(_))
    ));
    assert!(matches!(blobs.keys().await, Err(Error::Unavailable(_))));
    place.0.restart();
    assert_eq!(
        blobs.get("a").await.unwrap(),
        Some(Bytes::from_static(b"x"))
    );
}
