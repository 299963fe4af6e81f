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

/// Expects each value of a table from words to values to be refused with the words.
#[track_caller]
fn refused_values(place: &str, at: &str, values_by_words: Value) {
    for (words, values) in values_by_words.as_object().unwrap() {
        for value in values.as_array().unwrap() {
            refused(place, value.clone(), at, words);
        }
    }
}

/// Returns the rows of a table.
fn rows<Row: serde::de::DeserializeOwned>(table: Value) -> Vec<Row> {
    serde_json::from_value(table).unwrap()
}

/// Adds fields to an object and replaces those that it has.
fn extended(mut object: Value, more: &Value) -> Value {
    let fields = object.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    object
}

/// Returns as many copies of a tool as asked for, each with its own slug.
fn numbered(tool: &Value, count: usize) -> Value {
    (0..count)
        .map(|number| {
            extended(
                tool.clone(),
                &json!({ "slug": format!("DEMO_TOOL_{number}") }),
            )
        })
        .collect()
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
    let long_slug = format!("DEMO_{}", "A".repeat(60));
    for (place, value, at, words) in rows::<(String, Value, String, String)>(json!([
        ["/abi", "2.0.0", "abi:", "not supported"],
        ["/name", "", "name:", "empty"],
        ["/name", " Demo", "name:", "white space"],
        ["/name", "De\nmo", "name:", "one line"],
        ["/name", "x".repeat(101), "name:", "too long"],
        ["/categories", ["Dev Tools"], "categories:", "not a category"],
        ["/categories", ["a", "a"], "categories:", "twice"],
        ["/limits", { "cpu_ms": 0 }, "limits.cpu_ms:", "cannot be 0"],
        ["/tools/0/slug", "OTHER_GET", "tools.OTHER_GET.slug:", "must begin with `DEMO_`"],
        ["/tools/0/slug", "DEMO_", "tools.DEMO_.slug:", "not a slug"],
        ["/tools/0/slug", "demo_get", "tools[0].slug:", "not a slug"],
        ["/tools/0/slug", long_slug, "tools.DEMO_", "at most 64"],
    ])) {
        refused(&place, value, &at, &words);
    }
    let no_slugs = json!({ "not a slug": ["D", "1demo", "Demo", "de mo", "démo", "demo_", ""] });
    refused_values("/slug", "slug:", no_slugs);
    accepted("/tools/0/slug", json!(long_slug[..64]));
}

#[test]
fn slugs_are_unique_and_counted() {
    let mut manifest = valid();
    let tool = manifest["tools"][0].clone();
    manifest["tools"] = json!([tool, tool]);
    assert!(problems(&manifest)[0].contains("another tool has this slug"));
    manifest["tools"] = numbered(&tool, 2000);
    assert_eq!(problems(&manifest), Vec::<String>::new());
    manifest["tools"] = numbered(&tool, 2001);
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
    manifest["tools"] = numbered(&tool, 1500);
    assert_eq!(problems(&manifest), Vec::<String>::new());
    manifest["tools"] = numbered(&tool, 2000);
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
        let text = format!("Reads{hidden} it");
        let property = format!("/tools/0/input/properties/a{hidden}");
        let input = "/tools/0/input/properties/id";
        for (place, value, at) in rows::<(String, Value, String)>(json!([
            ["/description", text, "description:"],
            [
                "/tools/0/description",
                text,
                "tools.DEMO_GET_ITEM.description:"
            ],
            [
                format!("{input}/enum"),
                [text],
                "tools.DEMO_GET_ITEM.input.properties.id.enum.0:"
            ],
            [property, {}, "tools.DEMO_GET_ITEM.input.properties:"],
            [
                "/auth/0/fields/0/title",
                text,
                "auth.API_KEY.fields.api_key.title:"
            ],
        ])) {
            refused(&place, value, &at, "invisible");
        }
    }
    refused("/name", json!("Cafe\u{301}"), "name:", "NFC");
    accepted("/name", json!("Café ☕\u{fe0f} 日本語"));
}

#[test]
fn a_schema_is_closed_bounded_and_safe() {
    let at = "tools.DEMO_GET_ITEM.input";
    let no_objects = json!({ "\"type\": \"object\"": [{}, true] });
    refused_values("/tools/0/input", at, no_objects);
    refused(
        "/tools/0/output",
        json!({ "type": "string" }),
        "tools.DEMO_GET_ITEM.output:",
        "an output must be an object",
    );
    accepted("/tools/0/output", json!({}));
    let property = "/tools/0/input/properties/id";
    accepted(
        property,
        json!({ "type": "array", "items": { "$ref": "#" } }),
    );
    refused_values(
        property,
        at,
        json!({
            "not local": [{ "$ref": "https://example.com/x.json" }, { "$ref": "other.json#/a" }],
            "does not exist": [{ "$ref": "#/$defs/none" }],
            "refers to itself": [{ "$ref": "#/properties/id" }],
            "remove `$id`": [{ "$id": "https://example.com/" }],
            "cannot be used": [
                { "pattern": "(?=a)b" },
                { "pattern": "a{1000}{1000}" },
                { "patternProperties": { "(": {} } },
            ],
            "is not one of": [{ "type": "text" }, { "type": [] }],
            "different names": [{ "required": ["a", "a"] }],
            "at least one value": [{ "enum": [] }],
            "whole number": [{ "minLength": -1 }],
            "list of schemas": [{ "anyOf": {} }],
            "object of schemas": [{ "properties": [] }],
            "an object, true or false": [{ "items": 5 }],
            "too many": [{ "description": "x".repeat(70_000) }],
        }),
    );
    refused(
        property,
        json!({ "pattern": "(a)\\1" }),
        "tools.DEMO_GET_ITEM.input.properties.id.pattern:",
        "cannot be used",
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
    refused_values(
        "/egress/0/host",
        "egress",
        json!({
            "two labels": ["example", "[::1]", "*.com", ""],
            "IP address": ["10.1.2.3"],
            "only as the first label": ["*", "api.*.com"],
            "many owners": ["*.co.uk", "*.com.au", "*.github.io"],
            "lower-case": [
                "API.example.com",
                "api.example.com.",
                "api..example.com",
                "-a.example.com",
                "user@example.com",
                "example.com:80",
            ],
            "Punycode": ["bücher.example"],
            "private network": ["db.internal", "my.localhost"],
        }),
    );
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
    let at = "egress.api.example.com:";
    refused("/egress/0/methods", json!(["get"]), at, "is not one of");
    refused("/egress/0/port", json!(0), at, "not a port");
    let paths = json!(["v1", "/a/../b", "/%2e%2e/", "/a?b", "//a"]);
    let by_words = json!({ "not the beginning of a path": paths });
    refused_values("/egress/0/path_prefix", at, by_words);
}

#[test]
fn a_tool_reaches_no_more_than_its_toolkit() {
    let rule = "/tools/0/egress/0";
    let wider = json!([
        { "host": "other.example.com" },
        { "host": "*.example.com" },
        { "host": "example.org" },
        { "host": "api.example.com", "port": 8443 },
    ]);
    let by_words = json!({ "allows more": wider });
    refused_values(rule, "tools.DEMO_GET_ITEM.egress", by_words);
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
    for (name, value, words) in [
        ("host", "{api_key}", "only the platform may set"),
        ("content-length", "{api_key}", "only the platform may set"),
        (
            "transfer-encoding",
            "{api_key}",
            "only the platform may set",
        ),
        ("connection", "{api_key}", "only the platform may set"),
        (
            "proxy-authorization",
            "{api_key}",
            "only the platform may set",
        ),
        ("X-Key", "{api_key}", "lower case"),
        ("x key", "{api_key}", "name of a header"),
        ("x-key", "{other}", "not a field"),
        ("x-key", "{api_key", "without"),
        ("x-key", "{api_key|upper}", "text and `{field}`"),
        ("x-key", "{api_key}\r\nx: y", "control characters"),
        ("x-key", "fixed", "no field is used"),
    ] {
        let header = json!({ "in": "header", "name": name, "value": value });
        refused(placement, header, at, words);
    }
    let elsewhere = json!({
        "query parameter": [{ "in": "query", "name": "a&b", "value": "{api_key}" }],
        "marker": [{ "in": "path", "marker": "a/b", "value": "{api_key}" }],
    });
    refused_values(placement, at, elsewhere);
    for good in rows::<Value>(json!([
        { "in": "path", "marker": "~key~", "value": "bot{api_key}" },
        { "in": "query", "name": "key", "value": "{api_key}" },
        { "in": "basic", "username": "{api_key}", "password": "" },
    ])) {
        accepted(placement, good);
    }
    let twice = json!([
        { "in": "basic", "username": "{site}", "password": "{api_key}" },
        { "in": "header", "name": "authorization", "value": "{api_key}" },
    ]);
    let whole = json!({ "filled twice": [twice], "does not use the credential": [[]] });
    refused_values("/auth/0/request", at, whole);
}

#[test]
fn addresses_of_a_scheme_stay_inside_the_egress() {
    let base = "/auth/0/base_url";
    refused_values(
        base,
        "auth.API_KEY.base_url:",
        json!({
            "not among the hosts": [
                "https://{site}.evil.example",
                "https://evil.example/{site}.example.org",
            ],
            "a host of any owner": ["https://{site}", "https://api.{site}"],
            "more than a host": ["https://evil.example@a.example.org"],
            "https://": ["http://a.example.org"],
            "is secret": ["https://{api_key}.example.org"],
            "not a field": ["https://{nothing}.example.org"],
        }),
    );
    accepted(base, json!("https://eu-{site}.example.org/api"));
    let verify = "/auth/0/verify";
    refused_values(
        verify,
        "auth.API_KEY.verify:",
        json!({
            "not among the hosts": [{ "method": "GET", "url": "https://evil.example/me" }],
            "not GET or POST": [{ "method": "DELETE", "url": "/me" }],
            "is secret": [{ "method": "GET", "url": "/me?key={api_key}" }],
        }),
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
        let scheme = json!({
            "mode": "OAUTH2", "name": "OAuth", "fields": [{ "name": "site", "title": "Site" }], "oauth2": flow,
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
        });
        json!([extended(scheme, &more)])
    };
    let with_flow = |more: Value| scheme(&extended(flow.clone(), &more), json!({}));
    accepted("/auth", with_flow(json!({})));
    accepted(
        "/auth",
        with_flow(json!({ "authorize_params": { "access_type": "offline" } })),
    );
    let at = "auth.OAUTH2.oauth2";
    refused("/auth", scheme(&Value::Null, json!({})), at, "has no flow");
    refused(
        "/auth/0/oauth2",
        flow.clone(),
        "auth.API_KEY.oauth2",
        "only the OAuth modes",
    );
    for (more, words) in rows::<(Value, String)>(json!([
        [{ "authorize_url": "http://example.com/" }, "https://"],
        [{ "token_url": "https://localhost/token" }, "localhost"],
        [{ "token_url": "https://{site}/token" }, "a host of any owner"],
        [{ "authorize_params": { "state": "x" } }, "the platform sets"],
        [{ "scopes": ["a b"] }, "white space"],
        [{ "scope_separator": "::" }, "one character"],
    ])) {
        refused("/auth", with_flow(more), at, &words);
    }
    let named =
        json!([{ "name": "access_token", "title": "Token" }, { "name": "site", "title": "Site" }]);
    for (more, at, words) in rows::<(Value, String, String)>(json!([
        [{ "request": [] }, "auth.OAUTH2.request", "does not use the credential"],
        [{ "fields": named }, at, "another name"],
        [{ "base_url": "https://{access_token}.example.org" }, "auth.OAUTH2.base_url", "is secret"],
    ])) {
        refused("/auth", scheme(&flow, more), &at, &words);
    }
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
        for flow in [
            json!({ "issuer": "https://{site}.example.org" }),
            json!({ "resource": "https://api.example.org/v1" }),
        ] {
            accepted("/auth", scheme(mode, flow));
        }
        let at = format!("auth.{mode}.oauth2.token_url");
        refused("/auth", scheme(mode, json!({})), &at, "https://");
    }
    let host = "https://example.org";
    for (flow, path, words) in rows::<(Value, String, String)>(json!([
        [{ "issuer": "http://example.org" }, ".issuer", "https://"],
        [{ "issuer": "https://{site}" }, ".issuer", "a host of any owner"],
        [{ "issuer": "https://example.org/?a=1" }, ".issuer", "query"],
        [{ "issuer": host, "resource": host }, ".resource", "remove one"],
        [
            { "authorize_url": format!("{host}/agree"), "token_url": format!("{host}/token") },
            ".register",
            "is missing",
        ],
    ])) {
        let at = format!("auth.DCR_OAUTH.oauth2{path}");
        refused("/auth", scheme("DCR_OAUTH", flow), &at, &words);
    }
}

#[test]
fn each_flow_member_is_checked() {
    let scheme = |more: Value| {
        let flow = json!({ "authorize_url": "https://example.com/authorize", "token_url": "https://example.org/token" });
        json!([{
            "mode": "OAUTH2", "name": "OAuth", "oauth2": extended(flow, &more),
            "fields": [
                { "name": "site", "title": "Site" }, { "name": "pin", "title": "Pin", "secret": true, "optional": true },
                { "name": "dc", "title": "Data center", "hidden": true },
            ],
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
        }])
    };
    let keep = json!({ "keep": { "dc": { "path": "api.dc", "pattern": "([a-z]+)" } } });
    let with = |more: Value| {
        let whole = json!({ "response": keep, "token": { "params": { "pin": "{pin}" } } });
        scheme(extended(whole, &more))
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
    let after_connect = json!([{ "request": { "url": "https://example.org/me" } }]);
    for (more, path, words) in rows::<(Value, String, String)>(json!([
        [{ "response": {} }, "", "the hidden field `dc` gets no value"],
        [
            { "response": { "keep": { "dc": { "path": "a" }, "x": { "path": "a" } } } },
            ".response.keep",
            "not a field",
        ],
        [
            { "response": { "keep": { "dc": { "path": "a..b" } } } },
            ".response.keep.dc.path",
            "not a path",
        ],
        [
            { "response": { "keep": { "dc": { "path": "a", "pattern": "(" } } } },
            ".response.keep.dc.pattern",
            "regular",
        ],
        [
            { "token": { "headers": { "host": "{pin}" } } },
            ".token.headers.host",
            "only the platform may set",
        ],
        [
            { "token": { "params": { "a": "{other}", "b": "{pin}" } } },
            ".token.params.a",
            "not a field",
        ],
        [
            { "token": { "drop": ["state"], "params": { "b": "{pin}" } } },
            ".token.drop",
            "not a value of the flow",
        ],
        [{ "refresh": { "url": "https://example.org/{pin}" } }, ".refresh.url", "is secret"],
        [{ "refresh": { "url": "https://example.org/{access_token}" } }, ".refresh.url", "is secret"],
        [{ "refresh": { "url": "https://{dc}/token" } }, ".refresh.url", "a host of any owner"],
        [{ "refresh_margin": 100_000 }, ".refresh_margin", "longer"],
        [{ "authorize_params": { "a": "{sha256({site})}" } }, ".authorize_params.a", "digests"],
        [{ "authorize_params": { "a": "{pin}" } }, ".authorize_params.a", "is secret"],
        [{ "authorize_rename": { "client": "key" } }, ".authorize_rename", "not a value of the flow"],
        [{ "client_auth": "private_key_jwt" }, ".assertion", "is missing"],
        [{ "revoke": {} }, ".revoke.url", "is missing"],
        [{ "register": { "url": "https://example.org/register" } }, ".register", "DCR_OAUTH"],
        [{ "after_connect": after_connect }, ".after_connect.0.keep", "is empty"],
        [{ "identity": { "path": ".a" } }, ".identity.path", "not a path"],
    ])) {
        let at = format!("auth.OAUTH2.oauth2{path}");
        refused("/auth", with(more), &at, &words);
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
    let scheme = |more: Value| {
        let scheme = json!({
            "mode": "API_KEY", "name": "Keys",
            "fields": [{ "name": "id", "title": "Id" }, { "name": "key", "title": "Key", "secret": true }],
        });
        json!([extended(scheme, &more)])
    };
    let sign = |sign: Value| scheme(json!({ "sign": sign }));
    let template = |request: Value| json!({ "with": "template", "request": request });
    let written =
        |value: &str| template(json!([{ "in": "header", "name": "x-sig", "value": value }]));
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
    let password = json!({ "in": "basic", "username": "a", "password": "{sha1({key})}" });
    let host = json!({ "in": "header", "name": "Host", "value": "{sha1({key})}" });
    let of_key = json!({
        "with": "oauth1", "method": "RSA-SHA1", "consumer_key": "{id}", "private_key": "{key}", "token": "",
    });
    let nowhere = extended(aws.clone(), &json!({ "region": "" }));
    for (wrong, path, words) in [
        (json!({ "with": "oauth1" }), ".consumer_key", "not a field"),
        (written("{key}"), ".request", "signs nothing"),
        (
            written("{hmac_sha256({key},{body_md5})}"),
            ".request.header x-sig",
            "not a field",
        ),
        (template(json!([])), ".request", "signs nothing"),
        (
            template(json!([password])),
            ".request.header authorization",
            "a header or a query parameter",
        ),
        (
            template(json!([host])),
            ".request.header Host",
            "name of a header",
        ),
        (of_key, ".method", "RSA-SHA1 is not supported"),
        (nowhere, ".region", "is empty"),
    ] {
        let at = format!("auth.API_KEY.sign{path}");
        refused("/auth", sign(wrong), &at, words);
    }
    let both = json!({ "sign": aws, "request": [{ "in": "basic", "username": "{id}", "password": "{key}" }] });
    let mut named = sign(written("{hmac_sha256({key},{path}{id})}"));
    named[0]["fields"][0]["name"] = json!("path");
    for (auth, at, words) in [
        (scheme(both), "sign", "and so does `request`"),
        (scheme(json!({})), "request", "does not use the credential"),
        (named, "fields.path", "reserved for a value"),
    ] {
        refused("/auth", auth, &format!("auth.API_KEY.{at}"), words);
    }
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
    for (certificate, key, part, words) in [
        ("other", "key", "certificate", "not a field"),
        ("key", "pem", "key", "as secret"),
    ] {
        let at = format!("auth.API_KEY.client_certificate.{part}");
        refused("/auth", scheme(certificate, key), &at, words);
    }
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
    let with = |more: &Value| {
        scheme(
            json!({ "with": "oauth1", "method": "HMAC-SHA256", "realm": "{site}" }),
            &extended(flow.clone(), more),
        )
    };
    accepted("/auth", with(&json!({ "identity": null })));
    let at = "auth.OAUTH1.oauth1";
    for (more, path, words) in rows::<(Value, String, String)>(json!([
        [{ "token_url": "https://{site}/token" }, ".token_url", "a host of any owner"],
        [{ "token_url": "https://example.org/{oauth_token}" }, ".token_url", "not a field"],
        [
            { "authorize_params": { "oauth_token": "x" } },
            ".authorize_params.oauth_token",
            "the platform sets",
        ],
        [{ "request_params": { "state": "x" } }, ".request_params.state", "the platform sets"],
        [{ "keep": {} }, "", "the hidden field `user` gets no value"],
        [{ "keep": { "user": { "path": "a..b" } } }, ".keep.user.path", "not a path"],
        [{ "keep": { "user": { "path": "a" }, "other": { "path": "a" } } }, ".keep", "not a field"],
        [{ "identity": "a..b" }, ".identity", "not a path"],
    ])) {
        refused("/auth", with(&more), &format!("{at}{path}"), &words);
    }
    let unsigned = scheme(Value::Null, &flow);
    refused("/auth", unsigned, "auth.OAUTH1.sign", "has no signature");
    let signed_only = scheme(json!({ "with": "oauth1" }), &Value::Null);
    refused("/auth", signed_only, at, "has no flow");
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
    let at = "auth.SAML.oauth2.token.params.assertion";
    refused("/auth", asserted, at, "is missing");
}

#[test]
fn field_default_must_be_accepted_value() {
    let fields = |more: &Value| {
        let field = json!({ "name": "site", "title": "Site" });
        json!([{ "name": "api_key", "title": "Key", "secret": true }, extended(field, more)])
    };
    let good = json!({ "one_of": ["eu", "us"], "default": "eu", "prefix": "https://" });
    accepted("/auth/0/fields", fields(&good));
    let at = "auth.API_KEY.fields.site";
    for (more, at, words) in rows::<(Value, String, String)>(json!([
        [{ "one_of": ["eu", "eu"], "default": "eu" }, at, "twice"],
        [{ "one_of": ["eu"], "default": "us" }, at, "not a value"],
        [{ "format": "uuid", "default": "7" }, at, "not a value"],
        [{ "hidden": true, "default": "7" }, "auth.API_KEY", "gets no value"],
    ])) {
        refused("/auth/0/fields", fields(&more), &at, &words);
    }
}

#[test]
fn field_names_are_unique_and_secrets_used() {
    let key = json!({ "name": "Key", "title": "Key", "secret": true });
    let twice = json!([{ "name": "api_key", "title": "A", "secret": true }, { "name": "api_key", "title": "B" }]);
    for (place, value, at, words) in rows::<(String, Value, String, String)>(json!([
        ["", [key], ".Key:", "a-z"],
        ["", twice, ":", "twice"],
        ["/1/secret", true, ".site:", "a secret has no default"],
        ["/1/pattern", "(", ".site.pattern:", "regular expression"],
        ["/1/default", "MAIN", ".site.pattern:", "does not match"],
        ["/0/secret", false, ":", "no field is secret"],
    ])) {
        let fields = format!("/auth/0/fields{place}");
        refused(&fields, value, &format!("auth.API_KEY.fields{at}"), &words);
    }
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
    let input = |more: &Value| extended(json!({ "type": "object" }), more);
    let list = json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/list" }] });
    let chain: serde_json::Map<_, _> = (0..40)
        .map(|level| {
            (
                level.to_string(),
                json!({ "allOf": [{ "$ref": format!("#/$defs/{}", level + 1) }] }),
            )
        })
        .chain([("40".to_owned(), json!({}))])
        .collect();
    for (costly, words) in rows::<(Value, String)>(json!([
        [{ "allOf": [{ "$ref": "#" }] }, "refers to itself"],
        [
            { "properties": { "a": { "$ref": "#/$defs/list" } }, "$defs": { "list": list } },
            "refers to itself",
        ],
        [{ "dependentSchemas": { "a": { "if": { "$ref": "#" } } } }, "refers to itself"],
        [
            { "items": { "$ref": "#/examples/0" }, "examples": [{ "not": { "$ref": "#/examples/0" } }] },
            "refers to itself",
        ],
        [{ "$ref": "#/$defs/0", "$defs": chain }, "nested deeper"],
        [{ "$ref": "#/default", "default": { "$dynamicRef": "#x" } }, "must be self-contained"],
    ])) {
        let at = "tools.DEMO_GET_ITEM.input:";
        refused("/tools/0/input", input(&costly), at, &words);
    }
    let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] } } });
    accepted("/tools/0/input", input(&tree));
    let within = json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }], "$defs": { "a": { "minProperties": 1 } } });
    accepted("/tools/0/input", input(&within));
}

#[test]
fn examples_are_objects() {
    for (part, value, at, words) in rows::<(String, Value, String, String)>(json!([
        ["examples", ["x"], "examples.0:", "must be an object"],
        ["hints", { "read_only": true, "destructive": true }, "hints:", "cannot be"],
        ["scopes", ["a b"], "scopes:", "by itself"],
    ])) {
        let at = format!("tools.DEMO_GET_ITEM.{at}");
        refused(&format!("/tools/0/{part}"), value, &at, &words);
    }
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
