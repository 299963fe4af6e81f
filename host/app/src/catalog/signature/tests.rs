//! Tests of `signature`.

use super::*;

/// Public key made by the `minisign` command, like all keys and signatures in these tests.
const PUBLIC_KEY: &str = "RWSzCa9XNNJDY/2B/4Ce5J1cRsiyoMpb44jVuoHH/xnNauAkQu+rwqti";
const OTHER_KEY: &str = "untrusted comment: minisign public key D9A05A072A2C13DF\n\
    RWTfEywqB1qg2WI3U1XP3/vXq1IxO6890MxHdEwyqzXpti3b8oJso+WH\n";
const SIGNED_BYTES: &[u8] = b"component";
const SIGNATURE_FILE: &str = "untrusted comment: signature from minisign secret key\n\
    RUSzCa9XNNJDY//AQKOJKo9rKAFNZajVJ30RD3aYNoIxGp4pOc7dcsucaG62i48EXb3PEy8c/WvA/jCbfZCZ63vT1tDOBsBoGAQ=\n\
    trusted comment: toolkit:hello version:20260101_00\n\
    nwrmly05Ih7D8yxQ8Z/m2qcN4JiO8rsdulmQXcZ8Id6ibcQxZM0lqOa8xGjzplwMWEpm0RjJOS4Gi6galVFACw==\n";
const LEGACY_SIGNATURE_FILE: &str = "untrusted comment: signature from minisign secret key\n\
    RWSzCa9XNNJDY9NzAQuTN3NBjAFKQlD+7DbXUmh7pae+jcDYPwTX1D9zQkGFezQdiNBmlsXMLxtt91IHMMKVgkmZZeEk9mP+hwU=\n\
    trusted comment: timestamp:1795246352\tfile:c\n\
    vW/21CA13r9AJit9N1vQuTF8MPtX4SkBfnYTWqd3EaJu8turbkbxIzH7KXYW+3Ryu2+1ZBgYdNJMDfD+cCBJBw==\n";

fn check(keys: &[&str], component: &[u8], signature: Option<&str>) -> Result<Option<String>> {
    TrustedKeys::read(keys).unwrap().check(component, signature)
}

#[test]
fn valid_signature_names_its_key() {
    let signer = check(&[OTHER_KEY, PUBLIC_KEY], SIGNED_BYTES, Some(SIGNATURE_FILE)).unwrap();
    assert_eq!(signer.as_deref(), Some("6343D23457AF09B3"));
    assert_eq!(check(&[], SIGNED_BYTES, None).unwrap(), None);
    assert_eq!(check(&[], SIGNED_BYTES, Some("nonsense")).unwrap(), None);
}

#[test]
fn nothing_else_is_good() {
    let invalid = |keys: &[&str], bytes: &[u8], text: &str| {
        let refused = check(keys, bytes, Some(text)).unwrap_err();
        assert!(
            refused.is(&errors::SIGNATURE_INVALID),
            "{text:?}: {refused}"
        );
    };
    invalid(&[PUBLIC_KEY], b"componenT", SIGNATURE_FILE);
    invalid(
        &[PUBLIC_KEY],
        SIGNED_BYTES,
        &SIGNATURE_FILE.replace("hello", "other"),
    );
    invalid(&[PUBLIC_KEY], SIGNED_BYTES, LEGACY_SIGNATURE_FILE);
    for text in [
        "",
        "nonsense",
        "a\nb\nc\nd\n",
        &SIGNATURE_FILE[..200],
        "\n\n\n\n",
        "a\nRWSzCa9XNNJDY/2B",
    ] {
        invalid(&[PUBLIC_KEY], SIGNED_BYTES, text);
    }
    assert!(
        check(&[PUBLIC_KEY], SIGNED_BYTES, None)
            .is_err_and(|error| error.is(&errors::SIGNATURE_MISSING))
    );
    assert!(
        check(&[OTHER_KEY], SIGNED_BYTES, Some(SIGNATURE_FILE))
            .is_err_and(|error| error.is(&errors::SIGNER_UNKNOWN))
    );
}

#[test]
fn a_key_that_is_none_is_named() {
    for wrong in ["", "RWSz", SIGNATURE_FILE, "untrusted comment: only"] {
        assert!(
            TrustedKeys::read(&[PUBLIC_KEY, wrong]).is_err(),
            "{wrong:?}"
        );
    }
}
