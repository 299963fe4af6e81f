//! Refusals at publishing: a clear error, nothing stored, and an unharmed server.

use harness::{Answer, Guest, Host, client::Body, guest, host::Setup};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{given, hostile};

/// Sends bytes for a separate slug to the shared server and asserts that they left no trace.
async fn refused(host: &Host, what: &str, bytes: Vec<u8>, slug: &str) -> Answer {
    refused_beside(host, given::shared_echo().await, what, bytes, slug).await
}

/// Does the same on a server that has this tool.
async fn refused_beside(host: &Host, echo: &str, what: &str, bytes: Vec<u8>, slug: &str) -> Answer {
    let path = format!("/toolkits/{slug}/versions/20260101_00");
    let answer = host.as_org().put(&path, bytes).await;
    let is_refused = [400, 413, 422].contains(&answer.status);
    assert!(is_refused, "{what}: {answer:#?}");
    answer.assert_envelope();
    let project = host.as_project();
    let tool = format!("/tools/{}", guest::tool(slug));
    for path in [tool, format!("/toolkits/{slug}")] {
        project.get(&path).await.expect(404);
    }
    let ran = project.execute(echo, json!({ "after": what })).await;
    assert_eq!(ran.data(), json!({ "after": what }));
    answer
}

fn said(answer: &Answer) -> String {
    let problems = answer.problems().join(" ");
    format!("{} {problems}", answer["error"]["message"])
}

#[tokio::test]
async fn non_component_is_refused() {
    let host = Host::shared().await;
    let whole = guest::with_manifest(Guest::echo().component(), &guest::manifest("whole"));
    let cases = [
        ("an empty file", Vec::new(), "empty"),
        ("a core module", Guest::echo().module(), "module"),
        ("text", b"hello, world".to_vec(), "component"),
        ("WebAssembly text", b"(component)".to_vec(), "component"),
        ("a bare header", b"\0asm\x0d\0\x01\0".to_vec(), "manifest"),
        (
            "a component without a manifest",
            Guest::echo().component(),
            "manifest",
        ),
        ("half a component", whole[..whole.len() / 2].to_vec(), ""),
        ("one byte", vec![0], "component"),
    ];
    for (what, bytes, word) in cases {
        let answer = refused(host, what, bytes, &given::slug()).await.expect(400);
        assert!(said(&answer).contains(word), "{what}: {}", said(&answer));
    }
}

#[tokio::test]
async fn oversized_zero_body_is_refused() {
    let host = Host::shared().await;
    let slug = given::slug();
    let before = host.footprint().resident_kib;
    let path = format!("/toolkits/{slug}/versions/20260101_00");
    let body = Body::Raw("application/wasm", vec![0; 100 << 20]);
    // A server that has responded need not read the rest, so a client that still writes may find
    // the connection closed.
    let org = host.as_org();
    if let Ok(answer) = org.try_send(Method::PUT, &path, body, &[]).await {
        answer.expect(413);
    }
    let grown = host.footprint().resident_kib.saturating_sub(before);
    assert!(grown < 64 << 10, "the server took {grown} KiB for it");
    let toolkit = format!("/toolkits/{slug}");
    host.as_project().get(&toolkit).await.expect(404);
    // If the size is declared, the server reads no body.
    let head = format!(
        "PUT /api/v3{path} HTTP/1.1\r\nhost: x\r\nx-org-api-key: {}\r\ncontent-type: application/wasm\r\n\
         content-length: 104857600\r\nconnection: close\r\n\r\n",
        host.org_key
    );
    let answer = org.raw(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn component_just_over_the_limit_is_refused() {
    let host = Host::shared().await;
    let slug = given::slug();
    let mut component = guest::with_manifest(Guest::echo().component(), &guest::manifest(&slug));
    let section = [&[4][..], b"fill", &vec![0; 24 << 20]].concat();
    guest::append(&mut component, 0, &section);
    refused(host, "25 MiB", component, &slug).await.expect(413);
}

#[tokio::test]
async fn unsupported_feature_is_named() {
    let host = Host::shared().await;
    let names = [
        ("feature_memories", "each with a memory of its own"),
        ("feature_threads", "thread"),
        ("feature_memory64", "64-bit memory"),
        ("feature_gc", "gc"),
        ("feature_exceptions", "exception"),
        ("feature_tail_calls", "tail call"),
        ("feature_unknown_import", "evil:api/thing"),
        ("feature_sockets", "wasi:sockets/network"),
        ("feature_empty_sockets", "wasi:sockets/tcp"),
        ("feature_empty_future", "toolhost:toolkit/http@2.0.0"),
    ];
    let features = hostile::features();
    assert_eq!(features.len(), names.len());
    for (guest, (name, word)) in features.into_iter().zip(names) {
        assert_eq!(guest.name, name);
        let bytes = guest::with_manifest(guest.component, &guest.manifest);
        let answer = refused(host, name, bytes, &format!("hostile_{name}")).await;
        let said = said(&answer).to_lowercase();
        assert!(said.contains(word), "{name} is not named: {said}");
    }
}

#[tokio::test]
async fn compile_bombs_cost_the_server_little() {
    let host = Host::shared().await;
    for guest in hostile::compile_bombs() {
        let before = host.footprint().resident_kib;
        let name = guest.name;
        let bytes = guest::with_manifest(guest.component, &guest.manifest);
        let answer = refused(host, name, bytes, &format!("hostile_{name}")).await;
        answer.expect(422);
        let grown = host.footprint().resident_kib.saturating_sub(before);
        assert!(grown < 32 << 10, "{name}: {grown} KiB were taken");
    }
}

/// A bomb passes every check and hits one of the compiler's limits. Nothing of it remains, and the
/// next component can be published.
#[tokio::test]
async fn compile_limits_stop_expensive_components() {
    // On a busy machine the time that a compilation may take is over before its processor time is.
    let times = ["2 s of processor time", "longer than 4s"];
    for (bomb, key, value, words) in [
        (0, "sandbox.compile_cpu_s", "2", &times[..]),
        (1, "sandbox.memory_mib", "64", &["128 MiB of memory"]),
    ] {
        let setup = Setup::new().with("sandbox.compile_cpu_s", "600");
        let host = setup.with(key, value).start().await;
        let echo = given::echo(&host).await;
        let compiled = host.data().join("compiled");
        let kept = || std::fs::read_dir(&compiled).unwrap().count();
        let (files, before) = (kept(), host.footprint().resident_kib);
        let guest = hostile::quiet_bombs().swap_remove(bomb);
        let name = guest.name;
        let slug = given::text(&guest.manifest["slug"]);
        let bytes = guest::with_manifest(guest.component, &guest.manifest);
        let answer = refused_beside(&host, &echo, name, bytes, slug).await;
        let answer = answer.expect_error(422, "Toolkit_ComponentLimit");
        let said = said(&answer);
        let is_named = words.iter().any(|word| said.contains(word));
        assert!(is_named, "{name}: {said}");
        assert_eq!(kept(), files, "{name} left a file");
        let grown = host.footprint().resident_kib.saturating_sub(before);
        assert!(grown < 32 << 10, "{name}: {grown} KiB were taken");
        let next = given::echo(&host).await;
        host.as_project().execute(&next, json!({})).await.data();
    }
}

/// A change to a valid manifest, and a word that the error must contain.
type Break = (fn(&mut Value), &'static str);

#[tokio::test]
async fn a_broken_manifest_has_every_problem_listed() {
    let host = Host::shared().await;
    let breaks: [Break; 14] = [
        (|m| m["abi"] = json!("9.0.0"), "abi"),
        (|m| m["name"] = json!(""), "name"),
        (|m| m["tools"][0]["slug"] = json!("OTHER_RUN"), "OTHER_RUN"),
        (
            |m| m["tools"][0]["input"] = json!({ "type": "array" }),
            "input",
        ),
        (
            |m| m["tools"][0]["output"] = json!({ "type": "nonsense" }),
            "output",
        ),
        (
            |m| {
                m["tools"][0]["input"] =
                    json!({ "type": "object", "$ref": "https://example.com/schema" })
            },
            "$ref",
        ),
        (|m| m["tools"][0]["description"] = json!(""), "description"),
        (
            |m| m["tools"][0]["description"] = json!("x".repeat(5000)),
            "description",
        ),
        (
            |m| m["tools"][0]["description"] = json!("hidden\u{202e}text"),
            "description",
        ),
        (
            |m| m["egress"] = json!([{ "host": "127.0.0.1" }]),
            "127.0.0.1",
        ),
        (|m| m["egress"] = json!([{ "host": "*.com" }]), "*.com"),
        (
            |m| m["egress"] = json!([{ "host": "localhost" }]),
            "localhost",
        ),
        (
            |m| m["tools"][0]["egress"] = json!([{ "host": "wider.example.org" }]),
            "wider.example.org",
        ),
        (
            |m| m["tools"] = json!([m["tools"][0].clone(), m["tools"][0].clone()]),
            "RUN",
        ),
    ];
    for (spoil, word) in breaks {
        let (slug, mut manifest) = given::manifest();
        manifest["egress"] = json!([{ "host": "api.example.com" }]);
        spoil(&mut manifest);
        let bytes = guest::with_manifest(Guest::echo().component(), &manifest);
        let answer = refused(host, word, bytes, &slug).await.expect(400);
        given::assert_contains(&answer["error"]["errors"], word);
    }
    let (slug, mut manifest) = given::manifest();
    for (spoil, _) in [breaks[0], breaks[1], breaks[6], breaks[9]] {
        spoil(&mut manifest);
    }
    let bytes = guest::with_manifest(Guest::echo().component(), &manifest);
    let answer = refused(host, "four problems", bytes, &slug).await;
    let problems = answer.expect(400).problems();
    assert!(problems.len() >= 4, "{problems:?}");
}

#[tokio::test]
async fn invalid_manifest_is_refused() {
    let host = Host::shared().await;
    let sections: [&[u8]; 6] = [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        br#"{"slug":"x"}"#,
        br#"{"slug":1,"slug":2}"#,
    ];
    for section in sections {
        let bytes = guest::with_section(Guest::echo().component(), section);
        let answer = refused(host, "no manifest", bytes, &given::slug()).await;
        answer.expect(400);
    }
    let slug = given::slug();
    let once = guest::with_manifest(Guest::echo().component(), &guest::manifest(&slug));
    let twice = guest::with_section(once, guest::manifest(&slug).to_string().as_bytes());
    let answer = refused(host, "two manifests", twice, &slug).await;
    answer.expect(400);
}

#[tokio::test]
async fn component_under_a_wrong_slug_is_refused() {
    let host = Host::shared().await;
    let manifest = guest::manifest(&given::slug());
    let bytes = guest::with_manifest(Guest::echo().component(), &manifest);
    let other = given::slug();
    let answer = refused(host, "another slug", bytes.clone(), &other).await;
    let answer = answer.expect(400);
    assert!(said(&answer).contains(&other), "{}", said(&answer));
    let slug = given::text(&manifest["slug"]);
    for version in ["20260101_01", "tomorrow"] {
        let path = format!("/toolkits/{slug}/versions/{version}");
        host.as_org().put(&path, bytes.clone()).await.expect(400);
    }
}

#[tokio::test]
async fn damaged_components_never_harm_the_server() {
    let host = Host::shared().await;
    let seed = harness::Dice::seed();
    eprintln!("seed {seed}");
    let mut dice = harness::Dice::new(seed);
    for _ in 0..40 {
        let slug = given::slug();
        let mut bytes = guest::with_manifest(Guest::fetch().component(), &guest::manifest(&slug));
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << dice.below(8);
        }
        let path = format!("/toolkits/{slug}/versions/20260101_00");
        let answer = host.as_org().put(&path, bytes).await;
        // A flipped bit in a name or a description yields a different, valid component.
        assert!([201, 400, 413, 422].contains(&answer.status), "{answer:#?}");
    }
    let echo = given::shared_echo().await;
    host.as_project().execute(echo, json!({})).await.data();
}
