//! Tests that each rule of a manifest refuses what it is meant for, and nothing else.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Manifest;

/// Returns a valid manifest.
fn valid() -> Value {
    json!({
        "abi": "1.0.0",
        "sdk": "toolkit-sdk 0.1.0",
        "slug": "demo",
        "name": "Demo",
        "description": "Shows.",
        "logo": "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
        "categories": ["developer-tools"],
        "version": "20261121_00",
        "auth": [{
            "mode": "API_KEY",
            "name": "API key",
            "fields": [
                { "name": "api_key", "title": "API key", "secret": true },
                { "name": "site", "title": "Site", "pattern": "[a-z]+", "default": "main" },
            ],
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {api_key}" }],
            "base_url": "https://{site}.example.org/v1",
            "verify": { "method": "GET", "url": "/me" },
        }],
        "egress": [{ "host": "api.example.com" }, { "host": "*.example.org" }],
        "tools": [{
            "slug": "DEMO_GET_ITEM",
            "name": "Get item",
            "description": "Reads.\n\nOne item.",
            "input": { "type": "object", "properties": { "id": { "type": "string", "pattern": "^[0-9]+$" } }, "required": ["id"] },
            "output": { "type": "object", "properties": { "next": { "$ref": "#/$defs/item" } }, "$defs": { "item": { "type": "object" } } },
            "hints": { "read_only": true },
            "tags": ["important"],
            "synonyms": ["fetch one"],
            "scopes": ["items:read"],
            "egress": [{ "host": "api.example.com", "methods": ["GET"], "path_prefix": "/v1/items" }],
            "examples": [{ "id": "7" }],
        }],
        "triggers": [{
            "slug": "DEMO_NEW_ITEM",
            "name": "New item",
            "description": "Fires.",
            "kind": "poll",
            "config": { "type": "object" },
            "payload": { "type": "object" },
        }],
        "limits": { "memory_mib": 96 },
    })
}

fn problems(manifest: &Value) -> Vec<String> {
    Manifest::from_json(manifest.to_string().as_bytes())
        .unwrap()
        .problems()
}

/// Returns the problems after one value has been replaced.
fn with(place: &str, value: Value) -> Vec<String> {
    let mut manifest = valid();
    let (parent, key) = place.rsplit_once('/').unwrap();
    match manifest.pointer_mut(parent).unwrap() {
        Value::Object(object) => _ = object.insert(key.to_owned(), value),
        Value::Array(array) => array[key.parse::<usize>().unwrap()] = value,
        _ => panic!("{place} does not exist"),
    }
    problems(&manifest)
}

/// Replaces one value and expects one problem that starts with the path and contains the words.
#[track_caller]
fn refused(place: &str, value: Value, at: &str, words: &str) {
    let found = with(place, value.clone());
    assert!(
        found
            .iter()
            .any(|problem| problem.starts_with(at) && problem.contains(words)),
        "{place} = {value} should be refused at `{at}` with `{words}`, but: {found:#?}"
    );
}

#[track_caller]
fn accepted(place: &str, value: Value) {
    let found = with(place, value.clone());
    assert!(
        found.is_empty(),
        "{place} = {value} should be accepted, but: {found:#?}"
    );
}

#[test]
fn a_valid_manifest_has_no_problems() {
    assert_eq!(problems(&valid()), Vec::<String>::new());
}

#[test]
fn all_problems_are_listed_at_once() {
    let mut manifest = valid();
    manifest["slug"] = json!("Demo!");
    manifest["egress"][0]["host"] = json!("10.0.0.1");
    manifest["tools"][0]["input"] = json!({ "type": "array" });
    let found = problems(&manifest);
    for at in ["slug:", "egress.10.0.0.1:", "tools.DEMO_GET_ITEM.input:"] {
        assert!(
            found.iter().any(|problem| problem.starts_with(at)),
            "{at} is missing in {found:#?}"
        );
    }
}

#[test]
fn names_and_slugs_have_a_form() {
    refused("/abi", json!("2.0.0"), "abi:", "not supported");
    for slug in ["D", "1demo", "Demo", "de mo", "démo", "demo_", ""] {
        refused("/slug", json!(slug), "slug:", "not a slug");
    }
    refused("/name", json!(""), "name:", "empty");
    refused("/name", json!(" Demo"), "name:", "white space");
    refused("/name", json!("De\nmo"), "name:", "one line");
    refused("/name", json!("x".repeat(101)), "name:", "too long");
    refused(
        "/categories",
        json!(["Dev Tools"]),
        "categories:",
        "not a category",
    );
    refused("/categories", json!(["a", "a"]), "categories:", "twice");
    refused(
        "/limits",
        json!({ "cpu_ms": 0 }),
        "limits.cpu_ms:",
        "cannot be 0",
    );
    refused(
        "/tools/0/slug",
        json!("OTHER_GET"),
        "tools.OTHER_GET.slug:",
        "must begin with `DEMO_`",
    );
    refused(
        "/tools/0/slug",
        json!("DEMO_"),
        "tools.DEMO_.slug:",
        "not a slug",
    );
    refused(
        "/tools/0/slug",
        json!("demo_get"),
        "tools[0].slug:",
        "not a slug",
    );
    refused(
        "/tools/0/slug",
        json!(format!("DEMO_{}", "A".repeat(60))),
        "tools.DEMO_",
        "at most 64",
    );
    accepted("/tools/0/slug", json!(format!("DEMO_{}", "A".repeat(59))));
}

#[test]
fn slugs_are_unique_and_counted() {
    let mut manifest = valid();
    let tool = manifest["tools"][0].clone();
    manifest["tools"] = json!([tool, tool]);
    assert!(problems(&manifest)[0].contains("another tool has this slug"));
    let numbered = |number: usize| {
        let mut tool = tool.clone();
        tool["slug"] = json!(format!("DEMO_TOOL_{number}"));
        tool
    };
    manifest["tools"] = (0..2000).map(numbered).collect();
    assert_eq!(problems(&manifest), Vec::<String>::new());
    manifest["tools"] = (0..2001).map(numbered).collect();
    assert!(problems(&manifest)[0].contains("at most 2000"));
    manifest["tools"] = json!([]);
    assert_eq!(problems(&manifest), Vec::<String>::new());
    manifest["triggers"] = json!([]);
    assert!(problems(&manifest)[0].contains("neither tools nor triggers"));
}

#[test]
fn a_manifest_is_at_most_eight_mebibytes() {
    let mut manifest = valid();
    let mut tool = manifest["tools"][0].take();
    tool["description"] = json!("x".repeat(4096));
    let numbered = |number: usize| {
        let mut tool = tool.clone();
        tool["slug"] = json!(format!("DEMO_TOOL_{number}"));
        tool
    };
    manifest["tools"] = (0..1500).map(numbered).collect();
    assert_eq!(problems(&manifest), Vec::<String>::new());
    manifest["tools"] = (0..2000).map(numbered).collect();
    assert!(
        problems(&manifest)[0].contains("at most 8388608"),
        "{:?}",
        problems(&manifest)
    );
}

#[test]
fn what_cannot_be_seen_is_refused_everywhere() {
    for hidden in [
        '\u{200b}',
        '\u{202e}',
        '\u{2066}',
        '\u{feff}',
        '\u{e0041}',
        '\u{7}',
        '\u{ad}',
        '\u{fe01}',
    ] {
        let text = json!(format!("Reads{hidden} it"));
        refused("/description", text.clone(), "description:", "invisible");
        refused(
            "/tools/0/description",
            text.clone(),
            "tools.DEMO_GET_ITEM.description:",
            "invisible",
        );
        refused(
            "/tools/0/input/properties/id/enum",
            json!([text]),
            "tools.DEMO_GET_ITEM.input.properties.id.enum.0:",
            "invisible",
        );
        refused(
            &format!("/tools/0/input/properties/a{hidden}"),
            json!({}),
            "tools.DEMO_GET_ITEM.input.properties:",
            "invisible",
        );
        refused(
            "/auth/0/fields/0/title",
            text,
            "auth.API_KEY.fields.api_key.title:",
            "invisible",
        );
    }
    refused("/name", json!("Cafe\u{301}"), "name:", "NFC");
    accepted("/name", json!("Café ☕\u{fe0f} 日本語"));
}

#[test]
fn a_schema_is_closed_bounded_and_safe() {
    let input = "/tools/0/input";
    let at = "tools.DEMO_GET_ITEM.input";
    refused(input, json!({}), at, "\"type\": \"object\"");
    refused(input, json!(true), at, "\"type\": \"object\"");
    refused(
        "/tools/0/output",
        json!({ "type": "string" }),
        "tools.DEMO_GET_ITEM.output:",
        "an output must be an object",
    );
    accepted("/tools/0/output", json!({}));
    let property = "/tools/0/input/properties/id";
    refused(
        property,
        json!({ "$ref": "https://example.com/x.json" }),
        at,
        "not local",
    );
    refused(
        property,
        json!({ "$ref": "other.json#/a" }),
        at,
        "not local",
    );
    refused(
        property,
        json!({ "$ref": "#/$defs/none" }),
        at,
        "does not exist",
    );
    refused(
        property,
        json!({ "$ref": "#/properties/id" }),
        at,
        "refers to itself",
    );
    accepted(
        property,
        json!({ "type": "array", "items": { "$ref": "#" } }),
    );
    refused(
        property,
        json!({ "$id": "https://example.com/" }),
        at,
        "remove `$id`",
    );
    refused(
        property,
        json!({ "pattern": "(a)\\1" }),
        "tools.DEMO_GET_ITEM.input.properties.id.pattern:",
        "cannot be used",
    );
    refused(
        property,
        json!({ "pattern": "(?=a)b" }),
        at,
        "cannot be used",
    );
    refused(
        property,
        json!({ "pattern": "a{1000}{1000}" }),
        at,
        "cannot be used",
    );
    refused(
        property,
        json!({ "patternProperties": { "(": {} } }),
        at,
        "cannot be used",
    );
    refused(property, json!({ "type": "text" }), at, "is not one of");
    refused(property, json!({ "type": [] }), at, "is not one of");
    refused(
        property,
        json!({ "required": ["a", "a"] }),
        at,
        "different names",
    );
    refused(property, json!({ "enum": [] }), at, "at least one value");
    refused(property, json!({ "minLength": -1 }), at, "whole number");
    refused(property, json!({ "anyOf": {} }), at, "list of schemas");
    refused(
        property,
        json!({ "properties": [] }),
        at,
        "object of schemas",
    );
    refused(
        property,
        json!({ "items": 5 }),
        at,
        "an object, true or false",
    );
    refused(
        property,
        json!({ "description": "x".repeat(70_000) }),
        at,
        "too many",
    );
    refused(
        "/triggers/0/config",
        json!({}),
        "triggers.DEMO_NEW_ITEM.config:",
        "object",
    );
}

#[test]
fn a_schema_is_at_most_sixteen_deep() {
    let nested = |levels: usize| {
        (0..levels).fold(
            json!({ "type": "string" }),
            |inner, _| json!({ "type": "object", "properties": { "a": inner } }),
        )
    };
    accepted("/tools/0/input", nested(15));
    refused(
        "/tools/0/input",
        nested(16),
        "tools.DEMO_GET_ITEM.input",
        "deeper than 16",
    );
}

#[test]
fn a_host_is_a_full_public_name() {
    for (host, words) in [
        ("example", "two labels"),
        ("10.1.2.3", "IP address"),
        ("[::1]", "two labels"),
        ("*", "only as the first label"),
        ("api.*.com", "only as the first label"),
        ("*.com", "two labels"),
        ("*.co.uk", "many owners"),
        ("*.com.au", "many owners"),
        ("*.github.io", "many owners"),
        ("API.example.com", "lower-case"),
        ("api.example.com.", "lower-case"),
        ("api..example.com", "lower-case"),
        ("-a.example.com", "lower-case"),
        ("bücher.example", "Punycode"),
        ("db.internal", "private network"),
        ("my.localhost", "private network"),
        ("user@example.com", "lower-case"),
        ("example.com:80", "lower-case"),
        ("", "two labels"),
    ] {
        refused("/egress/0/host", json!(host), "egress", words);
    }
    for host in [
        "api.example.com",
        "*.api.example.com",
        "xn--bcher-kva.example",
    ] {
        let mut manifest = valid();
        manifest["tools"][0]
            .as_object_mut()
            .unwrap()
            .remove("egress");
        manifest["egress"][0]["host"] = json!(host);
        assert_eq!(problems(&manifest), Vec::<String>::new(), "{host}");
    }
    refused(
        "/egress/0/methods",
        json!(["get"]),
        "egress.api.example.com:",
        "is not one of",
    );
    refused(
        "/egress/0/port",
        json!(0),
        "egress.api.example.com:",
        "not a port",
    );
    for path in ["v1", "/a/../b", "/%2e%2e/", "/a?b", "//a"] {
        refused(
            "/egress/0/path_prefix",
            json!(path),
            "egress.api.example.com:",
            "not the beginning of a path",
        );
    }
}

#[test]
fn a_tool_reaches_no_more_than_its_toolkit() {
    let rule = "/tools/0/egress/0";
    let at = "tools.DEMO_GET_ITEM.egress";
    refused(
        rule,
        json!({ "host": "other.example.com" }),
        at,
        "allows more",
    );
    refused(rule, json!({ "host": "*.example.com" }), at, "allows more");
    refused(rule, json!({ "host": "example.org" }), at, "allows more");
    refused(
        rule,
        json!({ "host": "api.example.com", "port": 8443 }),
        at,
        "allows more",
    );
    accepted(rule, json!({ "host": "api.example.com" }));
    accepted(rule, json!({ "host": "a.b.example.org" }));
    accepted(rule, json!({ "host": "*.b.example.org" }));
    accepted(
        rule,
        json!({ "host": "api.example.com", "methods": ["POST"], "path_prefix": "/graphql" }),
    );
    let mut narrow = valid();
    narrow["egress"][0] =
        json!({ "host": "api.example.com", "methods": ["GET"], "path_prefix": "/v1/" });
    assert_eq!(problems(&narrow), Vec::<String>::new());
    narrow["tools"][0]["egress"][0] =
        json!({ "host": "api.example.com", "methods": ["POST"], "path_prefix": "/v1/items" });
    assert_eq!(problems(&narrow).len(), 1);
    narrow["tools"][0]["egress"][0] = json!({ "host": "api.example.com", "methods": ["GET"] });
    assert_eq!(problems(&narrow).len(), 1);
}

#[test]
fn a_credential_goes_only_where_it_may() {
    let placement = "/auth/0/request/0";
    let at = "auth.API_KEY.request";
    for name in [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "proxy-authorization",
    ] {
        refused(
            placement,
            json!({ "in": "header", "name": name, "value": "{api_key}" }),
            at,
            "only the platform may set",
        );
    }
    refused(
        placement,
        json!({ "in": "header", "name": "X-Key", "value": "{api_key}" }),
        at,
        "lower case",
    );
    refused(
        placement,
        json!({ "in": "header", "name": "x key", "value": "{api_key}" }),
        at,
        "name of a header",
    );
    refused(
        placement,
        json!({ "in": "header", "name": "x-key", "value": "{other}" }),
        at,
        "not a field",
    );
    refused(
        placement,
        json!({ "in": "header", "name": "x-key", "value": "{api_key" }),
        at,
        "without",
    );
    refused(
        placement,
        json!({ "in": "header", "name": "x-key", "value": "{api_key|upper}" }),
        at,
        "text and `{field}`",
    );
    refused(
        placement,
        json!({ "in": "header", "name": "x-key", "value": "{api_key}\r\nx: y" }),
        at,
        "control characters",
    );
    refused(
        placement,
        json!({ "in": "header", "name": "x-key", "value": "fixed" }),
        at,
        "no field is used",
    );
    refused(
        placement,
        json!({ "in": "query", "name": "a&b", "value": "{api_key}" }),
        at,
        "query parameter",
    );
    refused(
        placement,
        json!({ "in": "path", "marker": "a/b", "value": "{api_key}" }),
        at,
        "marker",
    );
    accepted(
        placement,
        json!({ "in": "path", "marker": "~key~", "value": "bot{api_key}" }),
    );
    accepted(
        placement,
        json!({ "in": "query", "name": "key", "value": "{api_key}" }),
    );
    accepted(
        placement,
        json!({ "in": "basic", "username": "{api_key}", "password": "" }),
    );
    let twice = json!([
        { "in": "basic", "username": "{site}", "password": "{api_key}" },
        { "in": "header", "name": "authorization", "value": "{api_key}" },
    ]);
    refused("/auth/0/request", twice, at, "filled twice");
    refused(
        "/auth/0/request",
        json!([]),
        at,
        "does not use the credential",
    );
}

#[test]
fn addresses_of_a_scheme_stay_inside_the_egress() {
    let base = "/auth/0/base_url";
    let at = "auth.API_KEY.base_url:";
    refused(
        base,
        json!("https://{site}.evil.example"),
        at,
        "not among the hosts",
    );
    refused(base, json!("https://{site}"), at, "a host of any owner");
    refused(base, json!("https://api.{site}"), at, "a host of any owner");
    refused(
        base,
        json!("https://evil.example/{site}.example.org"),
        at,
        "not among the hosts",
    );
    refused(
        base,
        json!("https://evil.example@a.example.org"),
        at,
        "more than a host",
    );
    refused(base, json!("http://a.example.org"), at, "https://");
    refused(
        base,
        json!("https://{api_key}.example.org"),
        at,
        "is secret",
    );
    refused(
        base,
        json!("https://{nothing}.example.org"),
        at,
        "not a field",
    );
    accepted(base, json!("https://eu-{site}.example.org/api"));
    let verify = "/auth/0/verify";
    let at = "auth.API_KEY.verify:";
    refused(
        verify,
        json!({ "method": "GET", "url": "https://evil.example/me" }),
        at,
        "not among the hosts",
    );
    refused(
        verify,
        json!({ "method": "DELETE", "url": "/me" }),
        at,
        "not GET or POST",
    );
    refused(
        verify,
        json!({ "method": "GET", "url": "/me?key={api_key}" }),
        at,
        "is secret",
    );
    accepted(
        verify,
        json!({ "method": "POST", "url": "https://api.example.com/me" }),
    );
}

#[test]
fn authorize_url_is_public_with_platform_parameters() {
    let flow = json!({ "authorize_url": "https://example.com/authorize", "token_url": "https://{site}.example.org/token" });
    let scheme = |flow: &Value, more: Value| {
        let mut scheme = json!({
            "mode": "OAUTH2", "name": "OAuth", "fields": [{ "name": "site", "title": "Site" }], "oauth2": flow,
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
        });
        scheme
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([scheme])
    };
    let with_flow = |key: &str, value: Value| {
        let mut flow = flow.clone();
        flow[key] = value;
        scheme(&flow, json!({}))
    };
    accepted("/auth", scheme(&flow, json!({})));
    accepted(
        "/auth",
        with_flow("authorize_params", json!({ "access_type": "offline" })),
    );
    let at = "auth.OAUTH2.oauth2";
    refused("/auth", scheme(&Value::Null, json!({})), at, "has no flow");
    refused(
        "/auth/0/oauth2",
        flow.clone(),
        "auth.API_KEY.oauth2",
        "only the OAuth modes",
    );
    refused(
        "/auth",
        with_flow("authorize_url", json!("http://example.com/")),
        at,
        "https://",
    );
    refused(
        "/auth",
        with_flow("token_url", json!("https://localhost/token")),
        at,
        "localhost",
    );
    refused(
        "/auth",
        with_flow("token_url", json!("https://{site}/token")),
        at,
        "a host of any owner",
    );
    refused(
        "/auth",
        with_flow("authorize_params", json!({ "state": "x" })),
        at,
        "the platform sets",
    );
    refused(
        "/auth",
        with_flow("scopes", json!(["a b"])),
        at,
        "white space",
    );
    refused(
        "/auth",
        with_flow("scope_separator", json!("::")),
        at,
        "one character",
    );
    refused(
        "/auth",
        scheme(&flow, json!({ "request": [] })),
        "auth.OAUTH2.request",
        "does not use the credential",
    );
    let field = json!({ "fields": [{ "name": "access_token", "title": "Token" }, { "name": "site", "title": "Site" }] });
    refused("/auth", scheme(&flow, field), at, "another name");
    let base = json!({ "base_url": "https://{access_token}.example.org" });
    refused(
        "/auth",
        scheme(&flow, base),
        "auth.OAUTH2.base_url",
        "is secret",
    );
}

#[test]
fn discovered_flow_may_omit_addresses() {
    let scheme = |mode: &str, flow: Value| {
        json!([{
            "mode": mode, "name": "OAuth", "oauth2": flow, "fields": [{ "name": "site", "title": "Site" }],
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
        }])
    };
    for mode in ["OAUTH2", "DCR_OAUTH", "CIMD_OAUTH", "S2S_OAUTH2"] {
        accepted(
            "/auth",
            scheme(mode, json!({ "issuer": "https://{site}.example.org" })),
        );
        accepted(
            "/auth",
            scheme(mode, json!({ "resource": "https://api.example.org/v1" })),
        );
        refused(
            "/auth",
            scheme(mode, json!({})),
            &format!("auth.{mode}.oauth2.token_url"),
            "https://",
        );
    }
    let at = "auth.DCR_OAUTH.oauth2";
    for (flow, place, why) in [
        (
            json!({ "issuer": "http://example.org" }),
            ".issuer",
            "https://",
        ),
        (
            json!({ "issuer": "https://{site}" }),
            ".issuer",
            "a host of any owner",
        ),
        (
            json!({ "issuer": "https://example.org/?a=1" }),
            ".issuer",
            "query",
        ),
        (
            json!({ "issuer": "https://example.org", "resource": "https://example.org" }),
            ".resource",
            "remove one",
        ),
        (
            json!({ "authorize_url": "https://example.org/agree", "token_url": "https://example.org/token" }),
            ".register",
            "is missing",
        ),
    ] {
        refused(
            "/auth",
            scheme("DCR_OAUTH", flow),
            &format!("{at}{place}"),
            why,
        );
    }
}

#[test]
fn each_flow_member_is_checked() {
    let scheme = |more: Value| {
        let mut flow = json!({ "authorize_url": "https://example.com/authorize", "token_url": "https://example.org/token" });
        flow.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([{
            "mode": "OAUTH2", "name": "OAuth", "oauth2": flow,
            "fields": [
                { "name": "site", "title": "Site" }, { "name": "pin", "title": "Pin", "secret": true, "optional": true },
                { "name": "dc", "title": "Data center", "hidden": true },
            ],
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
        }])
    };
    let keep = json!({ "keep": { "dc": { "path": "api.dc", "pattern": "([a-z]+)" } } });
    let with = |more: Value| {
        let mut whole = json!({ "response": keep, "token": { "params": { "pin": "{pin}" } } });
        whole
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        scheme(whole)
    };
    accepted("/auth", with(json!({})));
    accepted(
        "/auth",
        with(json!({
            "token": { "headers": { "authorization": "Basic {base64({client_id}:{pin || \"-\"})}" }, "params": { "t": "{sha256({now})}" } },
            "refresh": { "url": "https://{dc}.example.org/refresh", "drop": ["refresh_token"], "rename": { "client_id": "key" } },
            "assertion": { "algorithm": "ES256", "key": "{pin}", "claims": { "iss": "{client_id}" } },
            "revoke": { "url": "https://example.org/revoke" },
        })),
    );
    let at = "auth.OAUTH2.oauth2";
    for (more, place, why) in [
        (
            json!({ "response": {} }),
            "",
            "the hidden field `dc` gets no value",
        ),
        (
            json!({ "response": { "keep": { "dc": { "path": "a" }, "x": { "path": "a" } } } }),
            ".response.keep",
            "not a field",
        ),
        (
            json!({ "response": { "keep": { "dc": { "path": "a..b" } } } }),
            ".response.keep.dc.path",
            "not a path",
        ),
        (
            json!({ "response": { "keep": { "dc": { "path": "a", "pattern": "(" } } } }),
            ".response.keep.dc.pattern",
            "regular",
        ),
        (
            json!({ "token": { "headers": { "host": "{pin}" } } }),
            ".token.headers.host",
            "only the platform may set",
        ),
        (
            json!({ "token": { "params": { "a": "{other}", "b": "{pin}" } } }),
            ".token.params.a",
            "not a field",
        ),
        (
            json!({ "token": { "drop": ["state"], "params": { "b": "{pin}" } } }),
            ".token.drop",
            "not a value of the flow",
        ),
        (
            json!({ "refresh": { "url": "https://example.org/{pin}" } }),
            ".refresh.url",
            "is secret",
        ),
        (
            json!({ "refresh": { "url": "https://example.org/{access_token}" } }),
            ".refresh.url",
            "is secret",
        ),
        (
            json!({ "refresh": { "url": "https://{dc}/token" } }),
            ".refresh.url",
            "a host of any owner",
        ),
        (
            json!({ "refresh_margin": 100_000 }),
            ".refresh_margin",
            "longer",
        ),
        (
            json!({ "authorize_params": { "a": "{sha256({site})}" } }),
            ".authorize_params.a",
            "digests",
        ),
        (
            json!({ "authorize_params": { "a": "{pin}" } }),
            ".authorize_params.a",
            "is secret",
        ),
        (
            json!({ "authorize_rename": { "client": "key" } }),
            ".authorize_rename",
            "not a value of the flow",
        ),
        (
            json!({ "client_auth": "private_key_jwt" }),
            ".assertion",
            "is missing",
        ),
        (json!({ "revoke": {} }), ".revoke.url", "is missing"),
        (
            json!({ "register": { "url": "https://example.org/register" } }),
            ".register",
            "DCR_OAUTH",
        ),
        (
            json!({ "after_connect": [{ "request": { "url": "https://example.org/me" } }] }),
            ".after_connect.0.keep",
            "is empty",
        ),
        (
            json!({ "identity": { "path": ".a" } }),
            ".identity.path",
            "not a path",
        ),
    ] {
        refused("/auth", with(more), &format!("{at}{place}"), why);
    }
    let client = json!([
        { "name": "client_id", "title": "Id" },
        { "name": "client_secret", "title": "Secret", "secret": true },
    ]);
    for (shown, used) in [
        ("body", true),
        ("basic", true),
        ("secret_as_user", true),
        ("private_key_jwt", false),
        ("none", false),
    ] {
        let mut brought = scheme(json!({ "client_auth": shown }));
        brought[0]["fields"] = client.clone();
        let found = self::with("/auth", brought);
        assert_eq!(
            !found
                .iter()
                .any(|line| line.contains("client_secret: this secret is not used")),
            used,
            "{found:?}"
        );
    }
    let mut unused = scheme(json!({ "response": keep }));
    refused(
        "/auth",
        unused.clone(),
        "auth.OAUTH2.fields.pin",
        "is not used",
    );
    unused[0]["mode"] = json!("S2S_OAUTH2");
    refused(
        "/auth",
        unused,
        "auth.S2S_OAUTH2.oauth2.authorize_url",
        "has no redirect",
    );
}

#[test]
fn signature_uses_known_values_and_free_headers() {
    let scheme = |mode: &str, more: Value| {
        let mut scheme = json!({
            "mode": mode, "name": "Keys",
            "fields": [{ "name": "id", "title": "Id" }, { "name": "key", "title": "Key", "secret": true }],
        });
        scheme
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([scheme])
    };
    let sign = |sign: Value| scheme("API_KEY", json!({ "sign": sign }));
    let written = |value: &str| json!({ "with": "template", "request": [{ "in": "header", "name": "x-sig", "value": value }] });
    let aws = json!({
        "with": "aws_sigv4", "access_key_id": "{id}", "secret_access_key": "{key}", "region": "eu-central-1", "service": "s3",
    });
    let two_legged = json!({ "with": "oauth1", "consumer_key": "{id}", "consumer_secret": "{key}", "token": "", "token_secret": "" });
    for good in [
        &aws,
        &two_legged,
        &written("{hmac_sha512_base64({key},{method}{path}{id})}"),
    ] {
        accepted("/auth", sign(good.clone()));
    }
    let at = "auth.API_KEY.sign";
    for (wrong, place, why) in [
        (json!({ "with": "oauth1" }), ".consumer_key", "not a field"),
        (written("{key}"), ".request", "signs nothing"),
        (
            written("{hmac_sha256({key},{body_md5})}"),
            ".request.header x-sig",
            "not a field",
        ),
        (
            json!({ "with": "template", "request": [] }),
            ".request",
            "signs nothing",
        ),
        (
            json!({ "with": "template", "request": [{ "in": "basic", "username": "a", "password": "{sha1({key})}" }] }),
            ".request.header authorization",
            "a header or a query parameter",
        ),
        (
            json!({ "with": "template", "request": [{ "in": "header", "name": "Host", "value": "{sha1({key})}" }] }),
            ".request.header Host",
            "name of a header",
        ),
    ] {
        refused("/auth", sign(wrong), &format!("{at}{place}"), why);
    }
    let of_key = json!({
        "with": "oauth1", "method": "RSA-SHA1", "consumer_key": "{id}", "private_key": "{key}", "token": "",
    });
    refused(
        "/auth",
        sign(of_key),
        &format!("{at}.method"),
        "RSA-SHA1 is not supported",
    );
    let mut nowhere = aws.clone();
    nowhere["region"] = json!("");
    refused("/auth", sign(nowhere), &format!("{at}.region"), "is empty");
    let both = json!({ "sign": aws, "request": [{ "in": "basic", "username": "{id}", "password": "{key}" }] });
    refused(
        "/auth",
        scheme("API_KEY", both),
        at,
        "and so does `request`",
    );
    refused(
        "/auth",
        scheme("API_KEY", json!({})),
        "auth.API_KEY.request",
        "does not use the credential",
    );
    let mut named = sign(written("{hmac_sha256({key},{path}{id})}"));
    named[0]["fields"][0]["name"] = json!("path");
    refused(
        "/auth",
        named,
        "auth.API_KEY.fields.path",
        "reserved for a value",
    );
}

#[test]
fn client_certificate_and_key_are_fields() {
    let scheme = |certificate: &str, key: &str| {
        json!([{
            "mode": "API_KEY", "name": "Certificate",
            "fields": [{ "name": "pem", "title": "Certificate" }, { "name": "key", "title": "Key", "secret": true }],
            "client_certificate": { "certificate": certificate, "key": key },
        }])
    };
    accepted("/auth", scheme("pem", "key"));
    let at = "auth.API_KEY.client_certificate";
    refused(
        "/auth",
        scheme("other", "key"),
        &format!("{at}.certificate"),
        "not a field",
    );
    refused(
        "/auth",
        scheme("key", "pem"),
        &format!("{at}.key"),
        "as secret",
    );
}

#[test]
fn oauth1_flow_is_signed_without_secret_addresses() {
    let flow = json!({
        "request_url": "https://{site}.example.org/request", "authorize_url": "https://example.org/authorize",
        "token_url": "https://example.org/token", "request_params": { "scope": "read" }, "authorize_params": { "site": "{site}" },
        "keep": { "user": { "path": "user_id" } }, "identity": "screen_name",
    });
    let scheme = |sign: Value, flow: &Value| {
        json!([{
            "mode": "OAUTH1", "name": "OAuth", "sign": sign, "oauth1": flow,
            "fields": [{ "name": "site", "title": "Site" }, { "name": "user", "title": "User", "hidden": true }],
        }])
    };
    let with = |key: &str, value: Value| {
        let mut flow = flow.clone();
        flow[key] = value;
        scheme(
            json!({ "with": "oauth1", "method": "HMAC-SHA256", "realm": "{site}" }),
            &flow,
        )
    };
    accepted("/auth", with("identity", Value::Null));
    let at = "auth.OAUTH1.oauth1";
    for (key, value, place, why) in [
        (
            "token_url",
            json!("https://{site}/token"),
            ".token_url",
            "a host of any owner",
        ),
        (
            "token_url",
            json!("https://example.org/{oauth_token}"),
            ".token_url",
            "not a field",
        ),
        (
            "authorize_params",
            json!({ "oauth_token": "x" }),
            ".authorize_params.oauth_token",
            "the platform sets",
        ),
        (
            "request_params",
            json!({ "state": "x" }),
            ".request_params.state",
            "the platform sets",
        ),
        (
            "keep",
            json!({}),
            "",
            "the hidden field `user` gets no value",
        ),
        (
            "keep",
            json!({ "user": { "path": "a..b" } }),
            ".keep.user.path",
            "not a path",
        ),
        (
            "keep",
            json!({ "user": { "path": "a" }, "other": { "path": "a" } }),
            ".keep",
            "not a field",
        ),
        ("identity", json!("a..b"), ".identity", "not a path"),
    ] {
        refused("/auth", with(key, value), &format!("{at}{place}"), why);
    }
    refused(
        "/auth",
        scheme(Value::Null, &flow),
        "auth.OAUTH1.sign",
        "has no signature",
    );
    refused(
        "/auth",
        scheme(json!({ "with": "oauth1" }), &Value::Null),
        at,
        "has no flow",
    );
    refused(
        "/auth/0/oauth1",
        flow.clone(),
        "auth.API_KEY.oauth1",
        "only a scheme of mode OAUTH1",
    );
    let mut asserted = json!([{
        "mode": "SAML", "name": "SSO", "fields": [{ "name": "xml", "title": "Assertion", "secret": true }],
        "oauth2": { "token_url": "https://example.org/token", "token": { "params": { "assertion": "{base64url({xml})}" } } },
        "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
    }]);
    accepted("/auth", asserted.clone());
    asserted[0]["oauth2"]["token"]["params"] = json!({ "saml": "{xml}" });
    refused(
        "/auth",
        asserted,
        "auth.SAML.oauth2.token.params.assertion",
        "is missing",
    );
}

#[test]
fn field_default_must_be_accepted_value() {
    let field = |more: Value| {
        let mut field = json!({ "name": "site", "title": "Site" });
        field
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([{ "name": "api_key", "title": "Key", "secret": true }, field])
    };
    let at = "auth.API_KEY.fields.site";
    accepted(
        "/auth/0/fields",
        field(json!({ "one_of": ["eu", "us"], "default": "eu", "prefix": "https://" })),
    );
    refused(
        "/auth/0/fields",
        field(json!({ "one_of": ["eu", "eu"], "default": "eu" })),
        at,
        "twice",
    );
    refused(
        "/auth/0/fields",
        field(json!({ "one_of": ["eu"], "default": "us" })),
        at,
        "not a value",
    );
    refused(
        "/auth/0/fields",
        field(json!({ "format": "uuid", "default": "7" })),
        at,
        "not a value",
    );
    refused(
        "/auth/0/fields",
        field(json!({ "hidden": true, "default": "7" })),
        "auth.API_KEY",
        "gets no value",
    );
}

#[test]
fn field_names_are_unique_and_secrets_used() {
    let fields = "/auth/0/fields";
    refused(
        fields,
        json!([{ "name": "Key", "title": "Key", "secret": true }]),
        "auth.API_KEY.fields.Key:",
        "a-z",
    );
    let twice = json!([{ "name": "api_key", "title": "A", "secret": true }, { "name": "api_key", "title": "B" }]);
    refused(fields, twice, "auth.API_KEY.fields:", "twice");
    refused(
        "/auth/0/fields/1/secret",
        json!(true),
        "auth.API_KEY.fields.site:",
        "a secret has no default",
    );
    refused(
        "/auth/0/fields/1/pattern",
        json!("("),
        "auth.API_KEY.fields.site.pattern:",
        "regular expression",
    );
    refused(
        "/auth/0/fields/1/default",
        json!("MAIN"),
        "auth.API_KEY.fields.site.pattern:",
        "does not match",
    );
    refused(
        "/auth/0/fields/0/secret",
        json!(false),
        "auth.API_KEY.fields:",
        "no field is secret",
    );
    let mut two = valid();
    let scheme = two["auth"][0].clone();
    two["auth"] = json!([scheme, scheme]);
    assert!(problems(&two)[0].contains("another scheme has this mode"));
    let mut unused = valid();
    unused["auth"][0]["fields"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "other", "title": "Other", "secret": true }));
    assert!(problems(&unused)[0].contains("is not used"));
}

#[test]
fn a_logo_shows_and_does_nothing_else() {
    for logo in [
        "<svg><script>alert(1)</script></svg>",
        "<svg onload=\"x()\"></svg>",
        "<svg><image href=\"https://evil.example/x.png\"/></svg>",
        "<svg><a href=\"javascript:x()\"/></svg>",
        "<!DOCTYPE svg><svg/>",
        "https://example.com/logo.png",
        "data:text/html;base64,PGI+",
        "data:image/png;base64,%%%",
    ] {
        refused("/logo", json!(logo), "logo:", "");
    }
    refused(
        "/logo",
        json!(format!("<svg>{}</svg>", " ".repeat(70_000))),
        "logo:",
        "too many",
    );
    accepted("/logo", json!("data:image/png;base64,iVBORw0KGgo="));
}

#[test]
fn logos_hold_shapes_and_nothing_else() {
    let svg = |inside: &str| format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{inside}</svg>");
    for inside in [
        "<set attributeName=\"href\" to=\"javascript:x()\"/>",
        "<animate attributeName=\"href\" values=\"javascript:x()\"/>",
        "<use href=\"data:image/svg+xml;base64,PHN2Zz4=\"/>",
        "<image href=\"/x.png\"/>",
        "<image href = \"https://evil.example/x.png\"/>",
        "<feImage href=\"x.png\"/>",
        "<a href=\"java&#115;cript:x()\"><path d=\"M0 0\"/></a>",
        "<path style=\"fill:u\\72l(//evil.example)\"/>",
        "<path fill=\"url(https://evil.example/#a)\"/>",
        "<path fill=\"url( //evil.example )\"/>",
        "<path mask=\"image-set('https://evil.example' 1x)\"/>",
        "<path fill=\"\\75rl(x)\"/>",
        "<path onclick=\"x()\"/>",
        "<path\nonload\n=\n\"x()\"/>",
        "<svg:script xmlns:svg=\"http://www.w3.org/2000/svg\">x()</svg:script>",
        "<x xmlns=\"http://www.w3.org/1999/xhtml\"><iframe src=\"x\"/></x>",
        "<style>@\\69mport url(x)</style>",
        "<g><![CDATA[<script>x()</script>]]></g>",
        "<?xml-stylesheet href=\"x.css\"?>",
        "&unknown;",
        "<g>",
    ] {
        refused("/logo", json!(svg(inside)), "logo:", "");
        let shown = crate::sanitized_logo(&svg(inside));
        let harmful = ["evil", "href", "script", "x()", "x.css", "url", "import"];
        assert!(
            !harmful.iter().any(|word| shown.contains(word)),
            "{inside} is shown as {shown}"
        );
    }
    let deep = svg(&format!("{}{}", "<g>".repeat(100), "</g>".repeat(100)));
    refused("/logo", json!(deep), "logo:", "nested deeper");
    let colorful = svg(
        "<defs><linearGradient id=\"a\"><stop offset=\"1\" stop-color=\"rgb(1, 2, 3)\"/></linearGradient></defs>\
                        <path d=\"M0 0h8\" fill=\"url(#a)\" transform=\"rotate(45) scale(2)\"/><title>A &amp; B</title>",
    );
    accepted("/logo", json!(colorful));
    assert_eq!(crate::sanitized_logo(&colorful), colorful);
    assert_eq!(
        crate::sanitized_logo("<svg><!-- a --><path d=\"M0 0\"/></svg>"),
        svg("<path d=\"M0 0\"/>")
    );
}

#[test]
fn logos_of_toolkits_are_shown_as_they_are() {
    let toolkits = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../toolkits");
    let logos: Vec<_> = toolkits
        .read_dir()
        .unwrap()
        .filter_map(|toolkit| {
            std::fs::read_to_string(toolkit.unwrap().path().join("logo.svg")).ok()
        })
        .collect();
    assert!(!logos.is_empty());
    for logo in logos {
        accepted("/logo", json!(logo));
        assert_eq!(crate::sanitized_logo(&logo), logo.trim_end());
    }
}

#[test]
fn schemas_that_cost_without_bound_are_refused() {
    let input = |more: Value| {
        let mut schema = json!({ "type": "object" });
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        schema
    };
    let at = "tools.DEMO_GET_ITEM.input:";
    let list = json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/list" }] });
    for endless in [
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "properties": { "a": { "$ref": "#/$defs/list" } }, "$defs": { "list": list } }),
        json!({ "dependentSchemas": { "a": { "if": { "$ref": "#" } } } }),
        json!({ "items": { "$ref": "#/examples/0" }, "examples": [{ "not": { "$ref": "#/examples/0" } }] }),
    ] {
        refused("/tools/0/input", input(endless), at, "refers to itself");
    }
    let chain: serde_json::Map<_, _> = (0..40)
        .map(|level| {
            (
                level.to_string(),
                json!({ "allOf": [{ "$ref": format!("#/$defs/{}", level + 1) }] }),
            )
        })
        .chain([("40".to_owned(), json!({}))])
        .collect();
    refused(
        "/tools/0/input",
        input(json!({ "$ref": "#/$defs/0", "$defs": chain })),
        at,
        "nested deeper",
    );
    let hidden = json!({ "$ref": "#/default", "default": { "$dynamicRef": "#x" } });
    refused(
        "/tools/0/input",
        input(hidden),
        at,
        "must be self-contained",
    );
    let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] } } });
    accepted("/tools/0/input", input(tree));
    let within = json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }], "$defs": { "a": { "minProperties": 1 } } });
    accepted("/tools/0/input", input(within));
}

#[test]
fn examples_are_objects() {
    refused(
        "/tools/0/examples",
        json!(["x"]),
        "tools.DEMO_GET_ITEM.examples.0:",
        "must be an object",
    );
    refused(
        "/tools/0/hints",
        json!({ "read_only": true, "destructive": true }),
        "tools.DEMO_GET_ITEM.hints:",
        "cannot be",
    );
    refused(
        "/tools/0/scopes",
        json!(["a b"]),
        "tools.DEMO_GET_ITEM.scopes:",
        "by itself",
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "[a-z$]{1,6}",
        Just("$ref".to_owned()),
        Just("items".to_owned()),
        Just("properties".to_owned())
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("#")),
        Just(json!("#/properties/a")),
    ];
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn schema_check_always_terminates_without_panic(schema in any_json()) {
        let _ = with("/tools/0/input", schema.clone());
        let _ = with("/tools/0/output", schema);
    }

    #[test]
    fn any_text_is_checked_without_panic(text in "\\PC*", host in ".{0,40}", url in ".{0,40}") {
        let _ = with("/name", json!(text));
        let _ = with("/logo", json!(text));
        let _ = with("/auth/0/request/0/value", json!(text));
        let _ = with("/auth/0/base_url", json!(format!("https://{url}")));
        let _ = with("/egress/0/host", json!(host));
    }

    #[test]
    fn accepted_host_is_a_two_label_name(host in "[a-z0-9*.:\\[\\]-]{1,24}") {
        let mut manifest = valid();
        manifest["tools"][0].as_object_mut().unwrap().remove("egress");
        manifest["egress"][0]["host"] = json!(host);
        if problems(&manifest).is_empty() {
            prop_assert!(host.parse::<std::net::IpAddr>().is_err());
            prop_assert!(host.trim_start_matches("*.").split('.').count() >= 2);
            prop_assert!(!host[1..].contains('*'));
        }
    }

    #[test]
    fn a_narrower_rule_is_always_within(
        host in "[a-z]{1,8}", methods in prop::sample::subsequence(vec!["GET", "POST", "PUT", "DELETE"], 1..4), path in "/[a-z]{1,8}",
    ) {
        let mut manifest = valid();
        let outer = json!({ "host": "*.example.org", "methods": methods, "path_prefix": path });
        let inner = json!({ "host": format!("{host}.example.org"), "methods": [methods[0]], "path_prefix": format!("{path}/x") });
        manifest["egress"] = json!([outer, { "host": "*.example.org" }]);
        manifest["tools"][0]["egress"] = json!([inner]);
        prop_assert_eq!(problems(&manifest), Vec::<String>::new());
    }
}

#[test]
fn cleaned_text_is_accepted() {
    assert_eq!(
        crate::cleaned("plain\n\ttext, Zürich 中文 ❤\u{fe0f}"),
        "plain\n\ttext, Zürich 中文 ❤\u{fe0f}"
    );
    assert_eq!(crate::cleaned("a\u{200b}b\rc\u{202e}\u{7}"), "abc");
    assert_eq!(crate::cleaned("Zu\u{308}rich E\u{300}"), "Zürich È");
}

#[test]
fn lines_of_a_paragraph_are_joined() {
    for (text, joined) in [
        ("One line.", "One line."),
        (
            "Lists stories or\njobs.\n\nNewest  first,\n best first.\n",
            "Lists stories or jobs.\n\nNewest  first, best first.",
        ),
        (
            "Takes:\n- one\n  of them\n- two\n1. a\n2) b",
            "Takes:\n- one of them\n- two\n1. a\n2) b",
        ),
        (
            "# Head\ntext\n| a |\n| b |\nend",
            "# Head\ntext\n| a |\n| b |\nend",
        ),
        (
            "Code:\n```\na\n  b\n```\nend\nof it",
            "Code:\n```\na\n  b\n```\nend of it",
        ),
        ("Version\n2.5 of it", "Version 2.5 of it"),
    ] {
        assert_eq!(crate::joined_lines(text), joined);
    }
}
