//! Published examples of each signature scheme, and checks that a signature covers the right parts.

use manifest::{Placement, SignatureMethod};
use net::{Body, Limits, Method, header::HeaderName};

use super::*;

fn request(method: Method, url: &str, headers: &[(&str, &str)], body: &str) -> net::Request {
    let pairs = headers.iter().map(|(name, value)| {
        (
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        )
    });
    let body = if body.is_empty() {
        Body::Empty
    } else {
        Body::Bytes(body.to_owned().into())
    };
    net::Request {
        method,
        url: Url::parse(url).unwrap(),
        headers: pairs.collect(),
        body,
        limits: Limits::default(),
    }
}

fn signing(scheme: Sign, values: &[(&str, &str)]) -> Signing {
    Signing::new(
        scheme,
        values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    )
}

fn at(rfc3339: &str, nonce: &str) -> SignatureStamp {
    let date = DateTime::parse_from_rfc3339(rfc3339).unwrap();
    stamp(date.timestamp_millis(), nonce)
}

fn stamp(ms: i64, nonce: &str) -> SignatureStamp {
    let nonce = nonce.to_owned();
    SignatureStamp { ms, nonce }
}

fn written(request: &net::Request) -> &str {
    request.headers["authorization"].to_str().unwrap()
}

const FORM_HEADER: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

mod oauth1 {
    use super::*;

    fn signed(
        method: SignatureMethod,
        request: &mut net::Request,
        more: &[(&str, &str)],
        stamp: &SignatureStamp,
    ) -> String {
        let mut scheme = Sign::oauth1();
        let Sign::Oauth1 {
            method: own, realm, ..
        } = &mut scheme
        else {
            unreachable!("it is")
        };
        (*own, *realm) = (method, Some("a \"b\"".to_owned()));
        let values = [
            ("consumer_key", "9djdj82h48djs9d2"),
            ("consumer_secret", "j49sk3j29djd&"),
            ("oauth_token", "kkk9d7dh3k39sjv7"),
            ("oauth_token_secret", "dh893hdasih9"),
        ];
        let made = signing(scheme, &values).sign(request, more, stamp).unwrap();
        let [signature] = &made[..] else {
            panic!("{} signatures", made.len())
        };
        signature.expose().to_owned()
    }

    fn example() -> net::Request {
        let url = "http://EXAMPLE.COM:80/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b";
        request(Method::POST, url, &[FORM_HEADER], "c2&a3=2+q")
    }

    /// Uses the request of RFC 5849, section 3.4.1, with `oauth_version`, which the RFC leaves out
    /// there. The values were checked against another implementation.
    #[test]
    fn a_signature_covers_query_form_and_protocol_parameters() {
        let moment = stamp(137_131_201_000, "7d8f3e4a");
        let of = |method| signed(method, &mut example(), &[], &moment);
        assert_eq!(
            of(SignatureMethod::HmacSha1),
            "fF813vGJCP7hNvk+DR+jxQ4IkqI="
        );
        assert_eq!(
            of(SignatureMethod::HmacSha256),
            "VC5Jk0EX4vsvbFn7ZZgtDG6dZfeIrnxjeToJUg3uYR0="
        );
        assert_eq!(
            of(SignatureMethod::Plaintext),
            "j49sk3j29djd%26&dh893hdasih9"
        );
    }

    #[test]
    fn stored_rsa_sha1_scheme_is_never_sent_unsigned() {
        let stored = r#"{ "with": "oauth1", "method": "RSA-SHA1", "private_key": "{pem}" }"#;
        let scheme = serde_json::from_str(stored).unwrap();
        let stamp = at("2026-11-21T00:00:00Z", "n");
        let refused = signing(scheme, &[("pem", "canary")]).sign(&mut example(), &[], &stamp);
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains(RSA_SHA1_PROBLEM) && !text.contains("canary"),
            "{text}"
        );
    }

    #[test]
    fn header_holds_realm_and_protocol_but_no_secret() {
        let moment = stamp(137_131_201_000, "7d8f3e4a");
        let mut request = example();
        let signature = signed(
            SignatureMethod::HmacSha1,
            &mut request,
            &[("oauth_callback", "https://a.example/?x=1")],
            &moment,
        );
        let header = written(&request);
        assert!(
            header.starts_with("OAuth realm=\"a b\", oauth_consumer_key=\"9djdj82h48djs9d2\", "),
            "{header}"
        );
        for part in [
            "oauth_token=\"kkk9d7dh3k39sjv7\"",
            "oauth_timestamp=\"137131201\"",
            "oauth_callback=\"https%3A%2F%2Fa.example%2F%3Fx%3D1\"",
            &format!("oauth_signature=\"{}\"", percent(&signature)),
        ] {
            assert!(header.contains(part), "{part}: {header}");
        }
        assert!(
            !header.contains("j49sk3j29djd") && request.headers["authorization"].is_sensitive()
        );
    }

    #[test]
    fn only_parameters_and_form_bodies_are_signed() {
        let moment = stamp(0, "n");
        let json = ("content-type", "application/json");
        let of = |url: &str, headers: &[(&str, &str)], body: &str| {
            signed(
                SignatureMethod::HmacSha1,
                &mut request(Method::POST, url, headers, body),
                &[],
                &moment,
            )
        };
        let base = of("https://a.example/x", &[json], "{}");
        assert_eq!(of("https://a.example/x", &[json], "{\"a\":1}"), base);
        assert_ne!(of("https://a.example/x", &[FORM_HEADER], "a=1"), base);
        assert_ne!(of("https://a.example/x?a=1", &[json], "{}"), base);
        assert_eq!(
            of("https://a.example/x?a=1", &[json], "{}"),
            of("https://a.example/x", &[FORM_HEADER], "a=1")
        );
    }
}

mod aws {
    use super::*;

    const SUITE_KEYS: (&str, &str) = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");

    fn scheme(region: &str, service: &str) -> Sign {
        Sign::AwsSigv4 {
            access_key_id: "{id}".to_owned(),
            secret_access_key: "{key}".to_owned(),
            session_token: Some("{session}".to_owned()),
            region: region.to_owned(),
            service: service.to_owned(),
        }
    }

    fn signed(service: &str, keys: (&str, &str), request: &mut net::Request, time: &str) -> String {
        signing(
            scheme("us-east-1", service),
            &[("id", keys.0), ("key", keys.1)],
        )
        .sign(request, &[], &at(time, "n"))
        .unwrap();
        written(request)
            .rsplit_once("Signature=")
            .unwrap()
            .1
            .to_owned()
    }

    /// The values are from the test suite that AWS publishes.
    #[test]
    fn signatures_are_those_of_the_published_suite() {
        let of = |mut request: net::Request| {
            signed("service", SUITE_KEYS, &mut request, "2015-08-30T12:36:00Z")
        };
        let get = |url: &str| of(request(Method::GET, url, &[], ""));
        assert_eq!(
            get("https://example.amazonaws.com/"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        assert_eq!(
            get("https://example.amazonaws.com/?Param2=value2&Param1=value1"),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        );
        assert_eq!(
            of(request(
                Method::POST,
                "https://example.amazonaws.com/",
                &[FORM_HEADER],
                "Param1=value1"
            )),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
        );
    }

    /// The values are from the documentation of S3.
    #[test]
    fn signatures_for_s3_are_those_of_its_documentation() {
        let keys = (
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        );
        let of = |url: &str, headers: &[(&str, &str)]| {
            let url = format!("https://examplebucket.s3.amazonaws.com/{url}");
            signed(
                "s3",
                keys,
                &mut request(Method::GET, &url, headers, ""),
                "2013-05-24T00:00:00Z",
            )
        };
        assert_eq!(
            of("test.txt", &[("range", "bytes=0-9")]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            of("?lifecycle", &[]),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            of("?max-keys=2&prefix=J", &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn sent_request_is_spelled_as_signed() {
        let mut plain = request(
            Method::GET,
            "https://a.example//x y/(z)/?q=a+b&m=*&a",
            &[("X-Own", " a  b ")],
            "",
        );
        let sign = |service, request: &mut net::Request| {
            signed(service, SUITE_KEYS, request, "2026-11-21T00:00:00Z")
        };
        let signature = sign("execute-api", &mut plain);
        // The value was checked against another implementation.
        assert_eq!(
            signature,
            "d14c7315920b769a6229331a96b923c7a27856081cb6a1278a120de9b080d11f"
        );
        assert_eq!(
            plain.url.as_str(),
            "https://a.example/x%20y/%28z%29/?a=&m=%2A&q=a%20b"
        );
        assert!(
            written(&plain).contains("SignedHeaders=host;x-amz-date;x-own, "),
            "{}",
            written(&plain)
        );
        assert_eq!(sign("execute-api", &mut plain), signature, "signed anew");
        let mut kept = request(Method::GET, "https://a.example/b//x%2Fy!", &[], "");
        sign("s3", &mut kept);
        assert_eq!(kept.url.as_str(), "https://a.example/b//x%2Fy%21");
    }

    #[test]
    fn parts_go_unsigned_and_a_session_is_named() {
        let values = [("id", "id"), ("key", "key"), ("session", "s-1")];
        let mut request = request(Method::POST, "https://a.example/", &[], "");
        request.body = Body::Multipart(net::Form::new());
        let made = signing(scheme("eu-central-1", "s3"), &values)
            .sign(&mut request, &[], &at("2026-11-21T00:00:00Z", "n"))
            .unwrap();
        assert_eq!(request.headers["x-amz-content-sha256"], "UNSIGNED-PAYLOAD");
        assert_eq!(request.headers["x-amz-security-token"], "s-1");
        assert!(
            written(&request).contains("host;x-amz-content-sha256;x-amz-date;x-amz-security-token")
        );
        assert!(written(&request).ends_with(made[0].expose()));
    }
}

mod template {
    use super::*;

    fn header(name: &str, value: &str) -> Placement {
        Placement::Header {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn digests_go_where_the_template_says() {
        let scheme = Sign::Template {
            request: vec![
                header(
                    "x-signature",
                    "{hmac_sha256_base64({key},{method}\n{host}{path}\n{sorted_query}\n{body_sha256}\n{now})}",
                ),
                header("x-time", "{now}"),
                header(
                    "x-wsse",
                    "Nonce=\"{base64({random})}\", Created=\"{now_iso}\", Digest=\"{sha1_base64({random}{now_iso}{key})}\"",
                ),
                Placement::Query {
                    name: "sig".to_owned(),
                    value: "{hmac_sha1({key},{query}{body})}".to_owned(),
                },
            ],
        };
        let signing = signing(scheme, &[("key", "k")]);
        assert_eq!(
            (signing.header_names(), signing.query_names()),
            (vec!["x-signature", "x-time", "x-wsse"], vec!["sig"])
        );
        let mut request = request(
            Method::POST,
            "https://a.example:8443/x?b=2&a=1&SIG=old",
            &[],
            "{}",
        );
        let moment = at("2026-11-21T00:00:00Z", "word");
        let made = signing.sign(&mut request, &[], &moment).unwrap();
        let expected =
            |text: &str| STANDARD.encode(hmac(Hash::Sha256, b"k", text.as_bytes()).unwrap());
        let body = hex::encode(Sha256::digest("{}"));
        assert_eq!(
            request.headers["x-signature"],
            expected(&format!(
                "POST\na.example:8443/x\na=1&b=2\n{body}\n1795219200"
            ))
        );
        assert_eq!(request.headers["x-time"], "1795219200");
        let password = STANDARD.encode(Sha1::digest("word2026-11-21T00:00:00Zk"));
        let wsse =
            format!("Nonce=\"d29yZA==\", Created=\"2026-11-21T00:00:00Z\", Digest=\"{password}\"");
        assert_eq!(request.headers["x-wsse"], wsse);
        let in_query = hex::encode(hmac(Hash::Sha1, b"k", b"b=2&a=1{}").unwrap());
        assert_eq!(
            request.url.query(),
            Some(&*format!("b=2&a=1&sig={in_query}"))
        );
        let made: Vec<_> = made.iter().map(Secret::expose).collect();
        assert!(
            made.contains(&&*password)
                && made.contains(&&*in_query)
                && !made.contains(&"1795219200")
        );
    }

    #[test]
    fn missing_values_prevent_signing_without_leaks() {
        let scheme = |value: &str| Sign::Template {
            request: vec![header("x-signature", value)],
        };
        let mut request = request(Method::POST, "https://a.example/", &[], "");
        let at = at("2026-11-21T00:00:00Z", "word");
        let missing = signing(scheme("{hmac_sha256({key},{other})}"), &[("key", "canary")]).sign(
            &mut request,
            &[],
            &at,
        );
        assert!(!missing.unwrap_err().to_string().contains("canary"));
        request.body = Body::Multipart(net::Form::new());
        let parts = signing(
            scheme("{hmac_sha256({key},{body_sha256})}"),
            &[("key", "canary")],
        )
        .sign(&mut request, &[], &at);
        assert!(parts.unwrap_err().to_string().contains("x-signature"));
        assert!(request.headers.is_empty());
    }
}
