//! A value stays one value in one position, whatever it contains.

#![expect(
    clippy::unwrap_used,
    reason = "what goes wrong in a helper of a test fails the test"
)]

use proptest::prelude::*;
use toolkit_sdk::prelude::*;
use toolkit_sdk::testing;

/// Returns the URL of a request, or `None` if the request is refused.
fn address(request: impl FnOnce() -> Result<Response>) -> Option<String> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        testing::host().run(request).0
    }));
    let panic = match outcome {
        Ok(refused) => {
            assert_eq!(refused.unwrap_err().kind(), "invalid_input");
            return None;
        }
        Err(panic) => *panic.downcast::<String>().unwrap(),
    };
    Some(
        panic
            .split_once("GET ")
            .unwrap()
            .1
            .lines()
            .next()
            .unwrap()
            .to_owned(),
    )
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .unwrap()
        .into_owned()
}

proptest! {
    #[test]
    fn a_path_value_is_one_segment(value in "\\PC{0,20}") {
        let sent = address(|| http::get("https://api.example.com/a/{id}/b").path("id", &value).send());
        let Some(sent) = sent else {
            prop_assert!(["", ".", ".."].contains(&value.as_str()));
            return Ok(());
        };
        let segment = sent.strip_prefix("https://api.example.com/a/").and_then(|rest| rest.strip_suffix("/b")).unwrap();
        prop_assert!(!segment.contains(|letter: char| "/?#\\{}".contains(letter)), "{}", segment);
        prop_assert_eq!(decoded(segment), value);
    }

    #[test]
    fn a_query_value_is_one_pair(name in "[a-z\\[\\]&= ]{1,8}", value in "\\PC{0,20}") {
        let sent = address(|| http::get("https://api.example.com/a").query(&name, &value).query("z", 1).send()).unwrap();
        let pairs: Vec<&str> = sent.split_once('?').unwrap().1.split('&').collect();
        prop_assert_eq!(pairs.len(), 2);
        let (sent_name, sent_value) = pairs[0].split_once('=').unwrap();
        prop_assert_eq!((decoded(sent_name), decoded(sent_value)), (name, value));
    }
}
