//! Import of a Discovery document.

use serde_json::{Value, json};

use super::*;
use crate::{Imported, Media, Operation, Overlay, toolkit};

pub(crate) fn document() -> Value {
    json!({
        "kind": "discovery#restDescription", "name": "shelf", "title": "Shelf API", "description": "Keeps books.",
        "rootUrl": "https://shelf.example.com/", "servicePath": "shelf/v1/", "batchPath": "batch",
        "parameters": { "alt": { "type": "string", "location": "query" }, "fields": { "type": "string", "location": "query" },
            "key": { "type": "string", "location": "query" }, "quotaUser": { "type": "string", "location": "query" } },
        "auth": { "oauth2": { "scopes": { "a/shelf": {}, "a/shelf.readonly": {}, "a/shelf.file": {} } } },
        "schemas": {
            "Book": { "id": "Book", "type": "object", "properties": {
                "kind": { "type": "string", "default": "shelf#book" },
                "id": { "type": "string", "description": "Output only. Its id." },
                "title": { "type": "string", "annotations": { "required": ["shelf.books.insert"] } },
                "pages": { "type": "string", "format": "int64" },
                "bound": { "type": "string", "enum": ["OLD", "HARD", "SOFT"], "enumDeprecated": [true, false, false],
                    "enumDescriptions": ["Gone.", "With boards.", "Without."], "description": "How." },
                "next": { "$ref": "Book" },
                "more": { "type": "any" },
            } },
            "Books": { "type": "object", "properties": {
                "items": { "type": "array", "items": { "$ref": "Book" } }, "nextPageToken": { "type": "string" } } },
            "LendRequest": { "type": "object", "properties": { "to": { "type": "string", "description": "Required. Who." } } },
            "Nothing": { "type": "object", "properties": {} },
        },
        "resources": { "books": { "methods": {
            "list": {
                "id": "shelf.books.list", "path": "{+parent}/books", "httpMethod": "GET",
                "parameterOrder": ["parent", "q"], "response": { "$ref": "Books" }, "scopes": ["a/shelf", "a/shelf.file", "a/shelf.readonly"],
                "parameters": {
                    "pageToken": { "type": "string", "location": "query" },
                    "old": { "type": "string", "location": "query", "deprecated": true },
                    "maxResults": { "type": "integer", "format": "int32", "minimum": "1", "maximum": "50", "default": "10", "location": "query" },
                    "q": { "type": "string", "repeated": true, "location": "query", "description": "Words." },
                    "parent": { "type": "string", "location": "path", "required": true, "pattern": "^rooms/[^/]+$" },
                },
            },
            "insert": {
                "id": "shelf.books.insert", "path": "books", "httpMethod": "POST", "request": { "$ref": "Book" },
                "response": { "$ref": "Book" }, "scopes": ["a/shelf", "a/shelf.file"],
                "mediaUpload": { "accept": ["text/*"], "maxSize": "1MB", "protocols": { "simple": { "multipart": true, "path": "/upload/shelf/v1/books" } } },
            },
            "get": {
                "id": "shelf.books.get", "path": "books/{id}", "httpMethod": "GET", "response": { "$ref": "Book" },
                "parameters": { "id": { "type": "string", "location": "path", "required": true } },
                "supportsMediaDownload": true, "useMediaDownloadService": true,
            },
            "batchDelete": { "id": "shelf.books.batchDelete", "path": "books:delete", "httpMethod": "POST", "request": { "$ref": "Nothing" }, "deprecated": true },
        }, "resources": { "loans": { "methods": {
            "lend": { "id": "shelf.books.loans.lend", "path": "loans", "httpMethod": "POST", "request": { "$ref": "LendRequest" } },
            "page": { "id": "shelf.books.loans.page", "path": "page", "httpMethod": "GET", "supportsMediaDownload": true },
            "scan": { "id": "shelf.books.loans.scan", "path": "scan", "httpMethod": "POST",
                "mediaUpload": { "protocols": { "simple": { "path": "/upload/shelf/v1/scan" } } } },
        } } } } },
    })
}

fn read(document: &Value) -> Api {
    discovery(document.to_string().as_bytes()).unwrap()
}

fn operation<'a>(api: &'a Api, id: &str) -> &'a Operation {
    api.operations
        .iter()
        .find(|operation| operation.id == id)
        .unwrap()
}

fn made() -> Imported {
    toolkit(read(&document()), "shelf", &Overlay::default()).unwrap()
}

#[test]
fn media_methods_become_separate_tools() {
    let api = read(&document());
    let ids: Vec<&str> = api
        .operations
        .iter()
        .map(|operation| operation.id.as_str())
        .collect();
    let expected = [
        "books.batchDelete",
        "books.get.media",
        "books.get",
        "books.insert.media",
        "books.insert",
        "books.list",
        "books.loans.lend",
        "books.loans.page",
        "books.loans.scan",
    ];
    assert_eq!(ids, expected);
    assert_eq!(api.servers[0].url, "https://shelf.example.com/shelf/v1");
    assert!(
        operation(&api, "books.batchDelete").hints.destructive
            && operation(&api, "books.batchDelete").deprecated
    );
    assert_eq!(operation(&api, "books.loans.lend").tags, ["books.loans"]);
    let made = made();
    assert!(
        made.calls.contains_key("SHELF_BOOKS_GET_MEDIA"),
        "{:?}",
        made.calls.keys()
    );
    assert_eq!(made.report.not_chosen, 1);
}

#[test]
fn parameters_keep_their_meaning() {
    let api = read(&document());
    let list = operation(&api, "books.list");
    let names: Vec<&str> = list
        .parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    assert_eq!(names, ["parent", "q", "maxResults", "pageToken", "fields"]);
    assert_eq!(
        (list.path.as_str(), list.parameters[0].segments),
        ("/{parent}/books", true)
    );
    assert_eq!(
        list.parameters[1].schema,
        json!({ "type": "array", "description": "Words.", "items": { "type": "string" } })
    );
    assert!(list.parameters[1].explode);
    let expected =
        json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": 50, "default": 10 });
    assert_eq!(list.parameters[2].schema, expected);
    let pages = list.pages.clone().unwrap();
    assert_eq!(pages.items, "/items");
    assert_eq!(list.scopes, ["a/shelf.readonly"]);
    assert!(
        api.unsupported
            .iter()
            .any(|it| it.operation.as_deref() == Some("books.list") && it.what.contains("old"))
    );
}

#[test]
fn body_arguments_omit_output_only_members() {
    let made = made();
    let input = |slug: &str| made.manifest.tool(slug).unwrap().input.clone();
    let insert = input("SHELF_BOOKS_INSERT");
    assert_eq!(insert["required"], json!(["title"]));
    let names: Vec<&String> = insert["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["title", "fields", "pages", "bound", "next", "more"]);
    assert_eq!(
        insert["properties"]["bound"]["enum"],
        json!(["HARD", "SOFT"])
    );
    assert_eq!(
        insert["properties"]["bound"]["description"],
        "How.\nHARD: With boards.\nSOFT: Without."
    );
    assert_eq!(insert["properties"]["next"]["type"], "object");
    assert_eq!(input("SHELF_BOOKS_LOANS_LEND")["required"], json!(["to"]));
    assert_eq!(
        made.calls["SHELF_BOOKS_LOANS_SCAN"].url,
        "https://shelf.example.com/upload/shelf/v1/scan"
    );
}

#[test]
fn uploads_carry_description_and_downloads_return_file() {
    let api = read(&document());
    let upload = operation(&api, "books.insert.media");
    assert!(matches!(
        upload.body.as_ref().unwrap().media,
        Media::Related { .. }
    ));
    assert_eq!(
        upload.server.as_ref().unwrap().url,
        "https://shelf.example.com"
    );
    let sent = |operation: &Operation, name: &str| {
        operation
            .parameters
            .iter()
            .find(|it| it.name == name && it.hidden)
            .and_then(|it| it.default.clone())
            .unwrap()
    };
    assert_eq!(sent(upload, "uploadType"), "multipart");
    let scan = operation(&api, "books.loans.scan");
    assert!(matches!(
        scan.body.as_ref().unwrap().media,
        Media::File { .. }
    ));
    assert_eq!(sent(scan, "uploadType"), "media");
    for id in ["books.get.media", "books.loans.page"] {
        assert!(operation(&api, id).answer.file, "{id}");
        assert_eq!(sent(operation(&api, id), "alt"), "media");
    }
    let server = operation(&api, "books.get.media").server.clone().unwrap();
    assert_eq!(server.url, "https://shelf.example.com/download/shelf/v1");
    let made = made();
    let tool = made.manifest.tool("SHELF_BOOKS_INSERT_MEDIA").unwrap();
    assert_eq!(tool.input["required"], json!(["title", "file"]));
}

#[test]
fn accounts_are_connected_as_google_wants_it() {
    let api = read(&document());
    let flow = api.auth[0].oauth2.clone().unwrap();
    assert_eq!(flow.authorize_params["access_type"], "offline");
    assert_eq!(flow.authorize_params["prompt"], "consent");
    assert_eq!(api.auth[1].mode, AuthMode::BearerToken);
    let mut keyed = document();
    keyed.as_object_mut().unwrap().remove("auth");
    let modes: Vec<_> = read(&keyed).auth.iter().map(|scheme| scheme.mode).collect();
    assert_eq!(modes, [AuthMode::ApiKey]);
}

#[test]
fn what_is_no_document_is_refused_in_words() {
    for (given, part) in [
        (json!({}), "discovery#restDescription"),
        (
            json!({ "kind": "discovery#restDescription", "resources": [] }),
            "is not valid",
        ),
        (json!({ "kind": "discovery#restDescription" }), "rootUrl"),
    ] {
        let refused = discovery(given.to_string().as_bytes())
            .unwrap_err()
            .to_string();
        assert!(refused.contains(part), "{refused}");
    }
}
