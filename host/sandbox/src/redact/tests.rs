//! Spellings that are found, texts that stay unchanged, and the limit of steps.

use super::{replace::REDACTED_TEXT, *};
use futures::FutureExt;
use proptest::prelude::*;

fn redactor(secret: &str) -> Redactor {
    Redactor::new([&Secret::from(secret)])
}

#[test]
fn every_spelling_of_a_secret_is_removed() {
    let secret = "sk-Canary/+4711=é \"x\\y<z>";
    let redactor = redactor(secret);
    let json = serde_json::to_string(secret).unwrap();
    let url: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC)
        .to_string();
    let html = "sk-Canary/+4711=&#233; &quot;x\\y&lt;z&gt;";
    let unicode: String = secret
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    let nested = serde_json::to_string(&json).unwrap();
    for spelling in [
        secret,
        &json[1..json.len() - 1],
        &url,
        &percent,
        html,
        &unicode,
        &nested[3..nested.len() - 3],
    ] {
        let text = format!("before {spelling} after");
        assert_eq!(
            redactor.redact_text(&text),
            format!("before {REDACTED_TEXT} after"),
            "{spelling}"
        );
    }
}

#[test]
fn secret_in_a_confused_charset_is_removed() {
    let redactor = redactor("pä$€wort");
    for echo in [
        "pÃ¤$\u{e2}\u{82}\u{ac}wort".as_bytes(),
        "pÃ¤$â‚¬wort".as_bytes(),
        br"p\u00C3\u00a4$\u00e2\u0082\u00acwort",
        br"p\xc3\xa4$\xe2\x82\xacwort",
        "p\u{fffd}$\u{fffd}wort".as_bytes(),
        br"p\ufffd$\uFFFDwort",
        "pÃ\u{83}Â¤$Ã¢Â\u{82}Â¬wort".as_bytes(),
        "pÃƒÂ¤$Ã¢â€šÂ¬wort".as_bytes(),
        "pa\u{308}$€wort".as_bytes(),
        b"p\xe4$?wort",
        b"p\xe4$\x80wort",
        b"p?$?wort",
    ] {
        let clean = redactor.redact_bytes(echo);
        assert_eq!(clean, REDACTED_TEXT.as_bytes(), "{}", echo.escape_ascii());
    }
    let redactor = self::redactor("ärger-4711");
    for echo in [&b"\xe4rger-4711"[..], b"%E4rger-4711"] {
        let clean = redactor.redact_bytes(echo);
        assert_eq!(clean, REDACTED_TEXT.as_bytes(), "{}", echo.escape_ascii());
    }
}

#[test]
fn base64_of_latin1_is_found() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let redactor = redactor("ärger-4711");
    let echo = STANDARD.encode(b"user:\xe4rger-4711");
    assert!(redactor.may_contain_secret(echo.as_bytes()), "{echo}");
}

#[test]
fn base64_of_escaped_secret_is_found() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let redactor = redactor("clé \"47&11%");
    for escaped in [
        r#"{"x": "cl\u00e9 \"47&11%"}"#,
        r#"{"x":"clé \"47&11%"}"#,
        "x=cl%C3%A9%20%2247%2611%25",
        "x=cl%C3%A9+%2247%2611%25",
    ] {
        let echo = STANDARD.encode(escaped);
        assert!(redactor.may_contain_secret(echo.as_bytes()), "{escaped}");
    }
}

#[test]
fn secret_without_its_outer_blanks_is_removed() {
    let redactor = redactor(" re_trailing4711\t ");
    for echo in ["re_trailing4711", "re_trailing4711+", "re%5Ftrailing4711"] {
        let clean = redactor.redact_text(&format!("<{echo}>"));
        assert!(clean.starts_with("<[redacted]"), "{clean}");
    }
    assert!(self::redactor("abc ").may_contain_secret(b"abc "));
}

#[test]
fn secret_with_nul_between_characters_is_removed() {
    let redactor = redactor("re_4711");
    for nul in ["\\u0000", "%00"] {
        let characters: String = "re_4711".chars().map(|c| format!("{c}{nul}")).collect();
        let clean = redactor.redact_text(&format!("<{characters}>"));
        assert_eq!(clean, format!("<{REDACTED_TEXT}{nul}>"));
    }
}

#[test]
fn text_without_a_secret_is_not_touched() {
    let redactor = redactor("hunter2-hunter2");
    for text in [
        "",
        "hunter2-hunter",
        "%",
        "\\",
        "&",
        "&#",
        "&#x;",
        "\\u12",
        "%e",
        "a+b%20c\\n&amp;",
        "\\ud800\\u",
    ] {
        assert!(
            matches!(redactor.redact_bytes(text.as_bytes()), Cow::Borrowed(_)),
            "{text}"
        );
    }
    assert!(matches!(
        Redactor::default().redact_bytes(b"anything"),
        Cow::Borrowed(_)
    ));
}

#[test]
fn doubled_backslashes_of_a_secret_are_found() {
    let redactor = redactor(r"ab\\%c");
    for slashes in [r"\\", r"\\\\", r"\\\\\\\\", r"\\\", r"\\\\\\"] {
        let text = format!("x ab{slashes}%25c y");
        assert_eq!(
            redactor.redact_text(&text),
            format!("x {REDACTED_TEXT} y"),
            "{text}"
        );
    }
}

#[test]
fn longest_of_nested_secrets_is_removed() {
    let redactor = Redactor::new([&Secret::from("token"), &Secret::from("Bearer token-tail")]);
    assert_eq!(
        redactor.redact_text("x Bearer token-tail y token z"),
        format!("x {REDACTED_TEXT} y {REDACTED_TEXT} z")
    );
}

#[test]
fn text_that_costs_too_many_steps_is_withheld() {
    let redactor = redactor(&format!("{}b", "a".repeat(4 << 10)));
    let text = "a".repeat(200 << 10);
    assert_eq!(redactor.redact_text(&text), WITHHELD_TEXT);
    assert!(redactor.may_contain_secret(text.as_bytes()));
    let spared = Redactor::new([&Secret::from("aaaaaaab")]);
    assert!(
        !spared.may_contain_secret(text.as_bytes()),
        "a short secret takes fewer steps than the text brings along"
    );
}

#[test]
fn many_secrets_are_searched_within_the_steps() {
    let secrets: Vec<_> = (0..64)
        .map(|number| Secret::from(format!("sk-{number:02}-{}", "x7".repeat(60))))
        .collect();
    let redactor = Redactor::new(&secrets);
    let text = r#"{"sk-": "sk-0", "text": "x7x7 \\\"ssk-63\\\" %25sk &amp;sk+sk"}"#.repeat(4 << 10);
    let echo = format!("{text} {} {text}", secrets[63].expose());
    assert_eq!(
        redactor.redact_text(&echo),
        format!("{text} {REDACTED_TEXT} {text}")
    );
}

#[test]
fn names_of_headers_are_searched_in_any_case() {
    let redactor = redactor("Sk-Live-4711");
    for (name, found) in [
        ("x-sk-live-4711", true),
        ("SK-LIVE-4711", true),
        ("x-sk%2dlive-4711", true),
        ("sk-live", false),
    ] {
        assert_eq!(redactor.name_may_contain_secret(name), found, "{name}");
    }
}

#[tokio::test]
async fn long_search_takes_turns_and_ends_when_dropped() {
    let redactor = redactor("canary-4711");
    let cpu_permits = Semaphore::new(1);
    let text = format!("{}canary-4711", "x".repeat(3 * TURN_STEPS as usize));
    let mut search = Box::pin(redactor.find_in_turns(text.as_bytes(), &cpu_permits));
    assert!(
        (&mut search).now_or_never().is_none(),
        "others come to their turn before it ends"
    );
    assert_eq!(cpu_permits.available_permits(), 1);
    let turn = cpu_permits.acquire().await.unwrap();
    assert!(
        (&mut search).now_or_never().is_none(),
        "it waits for its turn"
    );
    drop(turn);
    assert_eq!(search.await.unwrap(), vec![text.len() - 11..text.len()]);
}

#[test]
fn secrets_of_request_and_call_are_found() {
    let call = Arc::new(redactor("token-4711"));
    let both = redactor("signature token-4711 end").with_others(call);
    assert_eq!(
        both.redact_text("a signature token-4711 end b token-4711 c"),
        format!("a {REDACTED_TEXT} b {REDACTED_TEXT} c")
    );
}

/// Encodes one character in one of its forms.
fn spell(c: char, how: u8) -> String {
    let mut units = [0; 2];
    let mut bytes = [0; 4];
    match how % 7 {
        0 => c
            .encode_utf8(&mut bytes)
            .bytes()
            .map(|b| format!("%{b:02X}"))
            .collect(),
        1 => c
            .encode_utf8(&mut bytes)
            .bytes()
            .map(|b| format!("%25{b:02x}"))
            .collect(),
        2 => c
            .encode_utf16(&mut units)
            .iter()
            .map(|u| format!("\\u{u:04X}"))
            .collect(),
        3 => format!("&#{};", u32::from(c)),
        4 => format!("&#x{:x};", u32::from(c)),
        5 if c.is_ascii_punctuation() => format!("\\{c}"),
        _ => c.to_string(),
    }
}

#[test]
fn introducers_alone_are_read_in_one_pass() {
    let redactor = redactor("\\%&+ canary");
    for introducer in ["\\", "%", "%25", "25", "&", "&#", "+", "\\u005c"] {
        let text = introducer.repeat(200_000);
        assert!(
            !redactor.may_contain_secret(text.as_bytes()),
            "{introducer}"
        );
    }
}

proptest! {
    #[test]
    fn no_mixture_of_spellings_survives(
        secret in "[ -~é€😀]{4,40}", hows in prop::collection::vec(any::<u8>(), 40),
        before in "[a-z ]{0,5}", after in "[a-z ]{0,5}",
    ) {
        let spelled: String = secret.chars().zip(hows).map(|(c, how)| spell(c, how)).collect();
        let clean = redactor(&secret).redact_text(&format!("{before}{spelled}{after}"));
        prop_assert!(!clean.contains(&spelled), "{} left in {}", spelled, clean);
        prop_assert!(clean.contains(REDACTED_TEXT));
    }

    #[test]
    fn no_alignment_of_base64_or_hexadecimal_survives(
        secret in "[!-~]{8,40}", before in prop::collection::vec(any::<u8>(), 0..9),
        after in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        use base64::{Engine as _, engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD, STANDARD_NO_PAD}};
        let whole = [before.as_slice(), secret.as_bytes(), after.as_slice()].concat();
        let redactor = redactor(&secret);
        for encoded in [STANDARD.encode(&whole), STANDARD_NO_PAD.encode(&whole), URL_SAFE.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
            prop_assert!(redactor.redact_text(&encoded).contains(REDACTED_TEXT), "{} was not found", encoded);
        }
        let hex: String = whole.iter().map(|byte| format!("{byte:02x}")).collect();
        prop_assert!(redactor.redact_text(&hex).contains(REDACTED_TEXT));
        prop_assert!(redactor.redact_text(&hex.to_uppercase()).contains(REDACTED_TEXT));
    }

    #[test]
    fn any_bytes_are_searched_without_a_panic(secret in ".{0,20}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let redactor = redactor(&secret);
        let clean = redactor.redact_bytes(&bytes).into_owned();
        if secret.len() >= MIN_SECRET_BYTES {
            prop_assert!(!clean.windows(secret.len()).any(|window| window == secret.as_bytes()));
        }
    }
}
