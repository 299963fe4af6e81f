//! Tests of `seal`.

use super::*;

fn key() -> DataKey {
    DataKey::new("dk_one".into(), &[7; 32], Arc::default())
}

fn place<'a>(project: &'a str, id: &'a str, field: &'static str) -> SealContext<'a> {
    SealContext {
        collection: "connected_accounts",
        project,
        id,
        field,
    }
}

#[test]
fn what_was_sealed_opens_at_its_place() {
    let at = place("p", "ca_1", "val");
    let sealed = key().seal(at, &"secret".to_owned()).unwrap();
    assert_eq!(key().open(at, &sealed).unwrap(), "secret");
    let json = serde_json::to_string(&sealed).unwrap();
    assert!(
        !json.contains("secret") && json.starts_with("\"v1.dk_one."),
        "{json}"
    );
    let mut unescaped = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut unescaped);
    sealed.serialize_unescaped(&mut serializer).unwrap();
    assert_eq!(unescaped, json.as_bytes());
    let read: Sealed<String> = serde_json::from_str(&json).unwrap();
    assert_eq!(key().open(at, &read).unwrap(), "secret");
}

#[test]
fn only_large_values_are_compressed() {
    let at = place("p", "log_1", "sealed");
    let value = "content ".repeat(2_560);
    let sealed = key().seal_compressed(at, &value).unwrap();
    assert!(sealed.text.starts_with("v2.dk_one."), "{}", sealed.text);
    assert!(sealed.text.len() < 2_048, "{}", sealed.text.len());
    assert_eq!(sealed.size(), serde_json::to_vec(&value).unwrap().len());
    assert_eq!(key().open(at, &sealed).unwrap(), value);
    let small = key().seal_compressed(at, &"content".to_owned()).unwrap();
    assert!(small.text.starts_with("v1.dk_one."), "{}", small.text);
    assert_eq!(key().open(at, &small).unwrap(), "content");
}

#[test]
fn two_ciphertexts_cannot_be_swapped() {
    let here = place("p", "ca_1", "val");
    let other = place("p", "ca_2", "val");
    let one = key().seal(here, &1).unwrap();
    let two = key().seal(other, &2).unwrap();
    assert!(key().open(here, &two).is_err());
    assert!(key().open(other, &one).is_err());
}

#[test]
fn a_seal_holds_collection_project_record_and_field() {
    let sealed = key().seal(place("p", "ca_1", "val"), &1).unwrap();
    for elsewhere in [
        place("q", "ca_1", "val"),
        place("p", "ca_2", "val"),
        place("p", "ca_1", "other"),
        place("pca_1", "", "val"),
        SealContext {
            collection: "auth_configs",
            ..place("p", "ca_1", "val")
        },
    ] {
        assert!(key().open(elsewhere, &sealed).is_err(), "{elsewhere:?}");
    }
}

#[test]
fn changed_ciphertext_or_wrong_key_is_refused() {
    let at = place("p", "ca_1", "val");
    for sealed in [
        key().seal(at, &"secret".to_owned()).unwrap(),
        key()
            .seal_compressed(at, &"content ".repeat(2_560))
            .unwrap(),
    ] {
        for index in 0..sealed.text.len() {
            let mut bytes = sealed.text.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let tampered = Sealed::<String> {
                text: String::from_utf8(bytes).unwrap(),
                value: PhantomData,
            };
            assert!(key().open(at, &tampered).is_err(), "byte {index}");
        }
        for (id, key) in [("dk_one", [8; 32]), ("dk_two", [7; 32])] {
            let other = DataKey::new(id.into(), &key, Arc::default());
            assert!(other.open(at, &sealed).is_err(), "{id}");
        }
    }
}

#[test]
fn no_two_seals_share_a_nonce() {
    let seals = 10_000;
    let nonces = (0..seals).map(|_| {
        let sealed = key().seal(place("p", "ca_1", "val"), &1).unwrap();
        let (_, text) = sealed.text.rsplit_once('.').unwrap();
        BASE64.decode(text).unwrap()[..NONCE_BYTES].to_vec()
    });
    assert_eq!(
        nonces.collect::<std::collections::HashSet<_>>().len(),
        seals
    );
}

#[test]
fn a_sealed_value_shows_nothing_when_printed() {
    let at = place("p", "ca_1", "val");
    let sealed = key().seal(at, &"secret".to_owned()).unwrap();
    assert_eq!(format!("{sealed:?}"), "Sealed");
}
