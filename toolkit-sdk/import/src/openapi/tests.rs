//! Import of `OpenAPI` documents.

use manifest::{AuthMode, Placement};
use serde_json::{Value, json};

use super::*;
use crate::{Body, Imported, Media, Overlay};

fn read(document: &Value) -> Api {
    openapi(document.to_string().as_bytes()).unwrap()
}

/// A document of version 3 with one operation.
fn document(method: &str, path: &str, operation: Value) -> Value {
    json!({
        "openapi": "3.1.0", "info": { "title": "Acme" }, "servers": [{ "url": "https://api.example.com" }],
        "paths": { path: { method: operation } },
    })
}

fn one(method: &str, path: &str, operation: Value) -> (Operation, Vec<Unsupported>) {
    let mut api = read(&document(method, path, operation));
    (api.operations.remove(0), api.unsupported)
}

fn made(document: &Value) -> Imported {
    crate::toolkit(read(document), "acme", &Overlay::default()).unwrap()
}

fn refusal(api: Api) -> String {
    let refused = crate::toolkit(api, "acme", &Overlay::default());
    refused.unwrap_err().to_string()
}

#[test]
fn an_operation_says_what_it_is() {
    let operation = json!({
        "operationId": "items/list", "summary": "List items", "description": "Newest first.", "tags": ["items"],
        "responses": { "200": { "content": { "application/json": { "schema": { "type": "array", "items": { "type": "string" } } } } } },
    });
    let tool = made(&document("get", "/items", operation))
        .manifest
        .tools
        .remove(0);
    assert_eq!(
        (tool.slug.as_str(), tool.name.as_str()),
        ("ACME_ITEMS_LIST", "List items")
    );
    assert_eq!(tool.description, "List items.\n\nNewest first.");
    assert!(tool.hints.read_only && tool.loose_output);
    assert_eq!(tool.tags, ["items"]);
    assert_eq!(
        tool.output["properties"]["items"]["items"],
        json!({ "type": "string" })
    );
}

#[test]
fn ambiguous_operation_id_becomes_method_and_path() {
    let mut twice = document("get", "/a", json!({ "operationId": "same" }));
    twice["paths"]["/b"] = json!({ "get": { "operationId": "same" }, "post": {} });
    let ids: Vec<_> = read(&twice)
        .operations
        .into_iter()
        .map(|operation| operation.id)
        .collect();
    assert_eq!(ids, ["GET /a", "GET /b", "POST /b"]);
}

#[test]
fn preflight_options_are_not_operations() {
    let mut document = document(
        "options",
        "/files",
        json!({ "operationId": "checkUpload", "summary": "Check before upload" }),
    );
    document["paths"]["/other"] = json!({ "options": { "responses": {} }, "trace": {} });
    let api = read(&document);
    let ids: Vec<_> = api
        .operations
        .iter()
        .map(|it| (it.id.as_str(), it.method.as_str(), it.hints.read_only))
        .collect();
    assert_eq!(ids, [("checkUpload", "OPTIONS", true)]);
    let left: Vec<_> = api
        .unsupported
        .iter()
        .map(|it| (it.operation.as_deref().unwrap(), it.unusable))
        .collect();
    assert_eq!(left, [("OPTIONS /other", false), ("TRACE /other", true)]);
}

#[test]
fn operation_parameters_override_path_parameters() {
    let mut document = document(
        "get",
        "/i/{id}/{rest+}",
        json!({
            "parameters": [
                { "$ref": "#/components/parameters/Limit" },
                { "name": "filter", "in": "query", "style": "deepObject", "explode": true, "schema": { "type": "object" } },
                { "name": "j", "in": "query", "content": { "application/json": { "schema": { "type": "object" } } } },
                { "name": "X-Trace", "in": "header", "schema": { "type": "string" } },
                { "name": "Accept", "in": "header", "schema": { "type": "string" } },
                { "name": "gone", "in": "path", "required": true },
            ],
        }),
    );
    document["components"] = json!({ "parameters": { "Limit": { "name": "limit", "in": "query", "schema": { "type": "integer" }, "description": "How many." } } });
    document["paths"]["/i/{id}/{rest+}"]["parameters"] =
        json!([{ "name": "limit", "in": "query", "required": true }]);
    let mut api = read(&document);
    let operation = api.operations.remove(0);
    let found: Vec<_> = operation
        .parameters
        .iter()
        .map(|it| (it.name.as_str(), it.required, it.segments))
        .collect();
    let expected = [
        ("limit", false, false),
        ("filter", false, false),
        ("j", false, false),
        ("X-Trace", false, false),
        ("id", true, false),
        ("rest", true, true),
    ];
    assert_eq!(found, expected);
    assert_eq!(operation.path, "/i/{id}/{rest}");
    assert_eq!(operation.parameters[0].schema["description"], "How many.");
    assert!(
        api.unsupported[0].what.contains("`gone`"),
        "{:?}",
        api.unsupported
    );
}

#[test]
fn what_cannot_be_sent_is_named() {
    let (operation, unsupported) = one(
        "get",
        "/i",
        json!({
            "parameters": [
                { "name": "session", "in": "cookie", "required": true },
                { "name": "theme", "in": "cookie" },
                { "name": "Forwarded", "in": "header" },
                { "$ref": "#/components/parameters/None" },
            ],
            "callbacks": { "done": {} },
        }),
    );
    assert!(operation.parameters.is_empty());
    let unusable: Vec<_> = unsupported
        .iter()
        .filter(|it| it.unusable)
        .map(|it| it.what.as_str())
        .collect();
    assert_eq!(unusable, ["the cookie parameter `session`"]);
    assert_eq!(unsupported.len(), 4, "{unsupported:?}");
    let session = json!({ "name": "s", "in": "cookie", "required": true });
    let document = document("get", "/i", json!({ "parameters": [session] }));
    assert!(refusal(read(&document)).contains("cookie parameter `s`"));
}

fn body_of(content: Value) -> Body {
    let body = json!({ "requestBody": { "content": content, "required": true } });
    one("post", "/i", body).0.body.unwrap()
}

#[test]
fn the_best_of_several_bodies_is_taken() {
    let object = json!({ "schema": { "type": "object", "properties": { "f": { "type": "string", "format": "binary" }, "n": { "type": "string" } } } });
    let json = body_of(
        json!({ "text/plain": {}, "multipart/form-data": object, "application/json": object }),
    );
    assert_eq!(json.media, Media::Json { media_type: None });
    let parts = body_of(
        json!({ "application/x-www-form-urlencoded": object, "multipart/form-data": object }),
    );
    assert!(matches!(parts.media, Media::Multipart { .. }));
    assert!(
        crate::is_file(&parts.schema["properties"]["f"])
            && !crate::is_file(&parts.schema["properties"]["n"])
    );
    assert!(crate::is_file(&body_of(json!({ "image/png": {} })).schema));
    for (media_type, schema, kind) in [
        ("image/png", json!({}), "file"),
        ("application/xml", json!({}), "text"),
        ("application/merge-patch+json", object, "json"),
    ] {
        let media = body_of(json!({ media_type: schema })).media;
        let expected = json!({ "kind": kind, "media_type": media_type });
        assert_eq!(serde_json::to_value(media).unwrap(), expected);
    }
}

#[test]
fn binary_response_becomes_file() {
    let answer = |content: Value| {
        let responses = json!({ "responses": { "200": { "content": content } } });
        one("get", "/i", responses).0.answer
    };
    assert!(answer(json!({ "application/pdf": {} })).file);
    assert!(!answer(json!({ "text/csv": {} })).file);
    assert!(!answer(json!({ "application/pdf": {}, "application/json": { "schema": {} } })).file);
    assert!(answer(json!({ "*/*": { "schema": { "type": "string", "format": "binary" } } })).file);
}

fn secured(schemes: Value, security: Value) -> Api {
    let mut document = document("get", "/i", json!({}));
    document["components"] = json!({ "securitySchemes": schemes });
    document["security"] = security;
    read(&document)
}

#[test]
fn security_schemes_become_ways_to_connect() {
    let key = |place: &str, name: &str| json!({ "type": "apiKey", "in": place, "name": name });
    let modes = |api: &Api| Vec::from_iter(api.auth.iter().map(|scheme| scheme.mode));

    let api = secured(json!({ "k": key("query", "key") }), json!([{ "k": [] }]));
    assert_eq!(api.auth[0].request, [Placement::query("key", "{api_key}")]);

    let both = json!({ "app": key("header", "X-App"), "user": key("header", "X-User") });
    let api = secured(both.clone(), json!([{ "app": [], "user": [] }]));
    assert_eq!(
        api.auth[0]
            .fields
            .iter()
            .map(|it| (it.name.as_str(), it.optional))
            .collect::<Vec<_>>(),
        [("app", false), ("user", false)]
    );
    let api = secured(both, json!([{ "app": [] }, { "user": [] }]));
    assert!(api.auth.len() == 1 && api.auth[0].fields.iter().all(|field| field.optional));

    let flow = json!({ "authorizationUrl": "https://acme.example/agree", "tokenUrl": "https://acme.example/token", "scopes": {} });
    let schemes = json!({ "o": { "type": "oauth2", "flows": { "authorizationCode": flow.clone() } }, "b": { "type": "http", "scheme": "basic" } });
    let api = secured(schemes, json!([{ "o": ["read", "write"] }, { "b": [] }]));
    assert_eq!(
        modes(&api),
        [AuthMode::Basic, AuthMode::Oauth2, AuthMode::BearerToken]
    );
    assert_eq!(api.operations[0].scopes, ["read", "write"]);

    let schemes = json!({
        "k": key("header", "X-Key"), "o": { "type": "oauth2", "flows": { "authorizationCode": flow } },
    });
    let alternatives = json!([{ "k": [] }, { "o": ["read"] }, { "o": ["admin"] }]);
    assert_eq!(
        secured(schemes, alternatives).operations[0].scopes,
        ["read"]
    );

    let relative = json!({ "o": { "type": "oauth2", "flows": { "authorizationCode": { "authorizationUrl": "/a", "tokenUrl": "/t" } } } });
    assert_eq!(
        modes(&secured(relative, json!([{ "o": [] }]))),
        [AuthMode::BearerToken]
    );
    let unused = secured(json!({ "k": key("cookie", "sid") }), Value::Null);
    assert_eq!(
        unused.auth[0].request,
        [Placement::header("cookie", "sid={api_key}")]
    );
}

#[test]
fn empty_security_means_no_auth() {
    let mut document = document("get", "/open", json!({ "security": [] }));
    document["paths"]["/closed"] = json!({ "get": {} });
    document["components"] =
        json!({ "securitySchemes": { "k": { "type": "http", "scheme": "bearer" } } });
    document["security"] = json!([{ "k": [] }]);
    let open: Vec<_> = read(&document)
        .operations
        .iter()
        .map(|operation| operation.no_auth)
        .collect();
    assert_eq!(open, [true, false]);
}

#[test]
fn a_signature_cannot_be_attached() {
    let digest = json!({ "d": { "type": "http", "scheme": "digest" } });
    let api = secured(digest, json!([{ "d": [] }]));
    assert!(api.auth.is_empty());
    assert!(
        api.unsupported
            .iter()
            .any(|it| it.unusable && it.what.contains("`d`")),
        "{:?}",
        api.unsupported
    );
}

#[test]
fn schemas_of_every_version_are_translated() {
    let schema = json!({
        "type": "object",
        "properties": {
            "old": { "type": "integer", "minimum": 1, "exclusiveMinimum": true, "nullable": true },
            "new": { "type": ["integer", "null"], "exclusiveMinimum": 1 },
            "far": { "$ref": "#/paths/~1i/post/responses/200/content/application~1json/schema" },
            "other": { "$ref": "other.yaml#/X" },
            "choice": { "type": "string", "enum": ["a"], "nullable": true },
        },
    });
    let mut document = document(
        "post",
        "/i",
        json!({
            "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/In" } } } },
            "responses": { "200": { "content": { "application/json": { "schema": { "type": "object", "properties": { "x": { "type": "string" } } } } } } },
        }),
    );
    document["components"] = json!({ "schemas": { "In": schema } });
    let made = made(&document);
    let members = &made.manifest.tools[0].input["properties"];
    assert_eq!(
        members["old"],
        json!({ "type": ["integer", "null"], "exclusiveMinimum": 1 })
    );
    assert_eq!(members["new"], members["old"]);
    assert_eq!(
        members["far"]["properties"]["x"],
        json!({ "type": "string" })
    );
    assert_eq!(members["other"], json!({ "description": "Anything." }));
    assert_eq!(members["choice"]["enum"], json!(["a", null]));
    assert!(
        made.report
            .unsupported
            .iter()
            .any(|it| it.what.contains("other.yaml")),
        "{:?}",
        made.report.unsupported
    );
}

#[test]
fn lists_that_go_on_are_noticed() {
    let list = |parameters: &[&str], schema: Value, headers: Value| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }))
            .collect();
        let response =
            json!({ "headers": headers, "content": { "application/json": { "schema": schema } } });
        let operation = json!({ "parameters": parameters, "responses": { "200": response } });
        serde_json::to_value(one("get", "/i", operation).0.pages).unwrap()
    };
    let array = json!({ "type": "array", "items": {} });
    let page = |name: &str| json!({ "type": "object", "properties": { "data": array, name: { "type": "string" } } });
    let linked = list(&[], array.clone(), json!({ "Link": {} }));
    assert_eq!(linked["next"], json!({ "by": "link" }));
    let by_cursor = json!({ "by": "cursor", "place": "/next_cursor", "parameter": "cursor" });
    let by_url = json!({ "by": "url", "place": "/next" });
    let by_page = json!({ "by": "page", "parameter": "page", "first": 1 });
    let by_offset = json!({ "by": "offset", "parameter": "offset" });
    for (parameters, schema, next) in [
        (&["cursor"][..], page("next_cursor"), by_cursor),
        (&[], page("next"), by_url),
        (&["page"], page("x"), by_page),
        (&["offset"], array.clone(), by_offset),
    ] {
        assert_eq!(list(parameters, schema, json!({}))["next"], next);
    }
    let cursor = list(&["cursor"], page("next_cursor"), json!({}));
    assert_eq!(cursor["items"], "/data");
    assert_eq!(list(&[], array, json!({})), Value::Null);
}

#[test]
fn swagger_2_reads_like_openapi_3() {
    let old = json!({
        "swagger": "2.0", "info": { "title": "Acme" }, "host": "api.example.com", "basePath": "/v1/", "schemes": ["http", "https"],
        "consumes": ["application/json"], "produces": ["application/json"],
        "securityDefinitions": { "basic": { "type": "basic" } }, "security": [{ "basic": [] }],
        "parameters": { "Limit": { "name": "limit", "in": "query", "type": "integer", "maximum": 9 } },
        "definitions": { "Item": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] } },
        "paths": { "/items": {
            "get": {
                "parameters": [{ "$ref": "#/parameters/Limit" }, { "name": "ids", "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": "pipes" }],
                "responses": { "200": { "schema": { "type": "array", "items": { "$ref": "#/definitions/Item" } } } },
            },
            "post": { "parameters": [{ "name": "item", "in": "body", "required": true, "schema": { "$ref": "#/definitions/Item" } }] },
            "put": { "parameters": [{ "name": "file", "in": "formData", "type": "file", "required": true }, { "name": "note", "in": "formData", "type": "string" }] },
            "patch": { "consumes": ["application/x-www-form-urlencoded"], "parameters": [{ "name": "tags", "in": "formData", "type": "array", "items": { "type": "string" } }] },
            "delete": { "produces": ["application/zip"], "responses": { "200": { "schema": { "type": "file" } } } },
        } },
    });
    let made = made(&old);
    assert_eq!(made.manifest.egress[0].host, "api.example.com");
    assert_eq!(made.manifest.auth[0].mode, AuthMode::Basic);
    let call = |name: &str| serde_json::to_value(&made.calls[name]).unwrap();
    let get = call("ACME_GET_ITEMS");
    assert_eq!(get["url"], "https://api.example.com/v1/items");
    assert_eq!(
        get["parameters"][1],
        json!({ "name": "ids", "place": "query", "style": "pipe_delimited" })
    );
    let tool = |name: &str| made.manifest.tool(name).unwrap();
    assert_eq!(
        tool("ACME_GET_ITEMS").input["properties"]["limit"]["maximum"],
        9
    );
    assert_eq!(tool("ACME_POST_ITEMS").input["required"], json!(["name"]));
    let put = call("ACME_PUT_ITEMS");
    assert_eq!(put["body"]["media"], "multipart");
    assert_eq!(
        put["body"]["fields"][0],
        json!({ "name": "file", "carries": "file" })
    );
    assert_eq!(
        call("ACME_PATCH_ITEMS")["body"]["fields"][0],
        json!({ "name": "tags", "carries": "joined" })
    );
    assert_eq!(call("ACME_DELETE_ITEMS")["answer"], json!({ "file": true }));
}

#[test]
fn what_is_no_description_is_refused_in_words() {
    for (bytes, part) in [
        ("{}", "neither `openapi` nor `swagger`"),
        ("openapi: 4.0.0", "OpenAPI 4.0.0"),
        ("[1]", "not an OpenAPI document"),
    ] {
        let refused = openapi(bytes.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
    }
    let empty = read(&json!({ "openapi": "3.0.0" }));
    assert!(refusal(empty).contains("no operation can become a tool"));
}
