//! Import of a GraphQL schema.

use apollo_compiler::{ExecutableDocument, Schema as Checked};
use serde_json::{Value, json};

use super::*;
use crate::{Overlay, toolkit};

pub(crate) const SCHEMA_TEXT: &str = r#"
directive @oneOf on INPUT_OBJECT
"A moment." scalar DateTime
scalar Upload
scalar Cents
enum Order { NEW OLD GONE @deprecated }
input Filter { text: String, order: Order = NEW, and: [Filter!], made: DateTime }
input Pick @oneOf { id: ID, name: String }
input NewBook { title: String!, note: String, by: ID!, copies: Int! = 1 }
interface Node { id: ID! }
interface Work implements Node { id: ID! title: String! }
type Book implements Work & Node {
  id: ID! title: String! pages: Int price: Cents printed: DateTime old: String @deprecated(reason: "no")
  author: Author! chapter(number: Int!): String similar: Book
  reviews(first: Int): Reviews!
}
type Song implements Work & Node { id: ID! title: String! pages: String seconds: Int }
type Author { id: ID! name: String books(first: Int, after: String): Books! friends: [Author!]! home: Place }
type Place { id: ID! city: String country: Country }
type Country { code: String ruler: Ruler }
type Ruler { name: String }
type Reviews { totalCount: Int! nodes: [Review] pageInfo: PageInfo! }
type Review { id: ID! }
type Books { nodes: [Book] pageInfo: PageInfo! totalCount: Int! }
type Hits { edges: [Hit] pageInfo: PageInfo! }
type Hit { cursor: String! node: Found }
union Found = Book | Song | Author
type PageInfo { hasNextPage: Boolean! endCursor: String }
type Query {
  "One book." book(pick: Pick!): Book
  books(first: Int = 10, after: String, filter: Filter): Books!
  search(text: String!, after: String): Hits!
  work(id: ID!): Work
  count: Int!
  gone: Int @deprecated
  addBook: Int
}
type Mutation { addBook(input: NewBook!): Book deleteBook(id: ID!, soft: Boolean! = true): ID cover(file: Upload!): Book sign(file: Upload, name: String): Int }
type Subscription { added: Book }
extend type Query { hello(name: String): String }
schema { query: Query mutation: Mutation subscription: Subscription }
"#;

fn api() -> Api {
    graphql(SCHEMA_TEXT.as_bytes()).unwrap()
}

fn operation<'a>(api: &'a Api, id: &str) -> &'a Operation {
    api.operations
        .iter()
        .find(|operation| operation.id == id)
        .unwrap()
}

fn document<'a>(api: &'a Api, id: &str) -> &'a str {
    match &operation(api, id).body.as_ref().unwrap().media {
        Media::Graphql { document } => document,
        _ => panic!("no document"),
    }
}

fn variables(api: &Api, id: &str) -> Value {
    operation(api, id).body.as_ref().unwrap().schema.clone()
}

#[test]
fn every_document_is_valid() {
    let schema = Checked::parse_and_validate(SCHEMA_TEXT, "schema.graphql").unwrap();
    let api = api();
    let unusable: Vec<_> = api
        .unsupported
        .iter()
        .filter(|it| it.unusable)
        .map(|it| it.operation.clone())
        .collect();
    for operation in api
        .operations
        .iter()
        .filter(|it| !unusable.contains(&Some(it.id.clone())))
    {
        let document = document(&api, &operation.id);
        let checked = ExecutableDocument::parse_and_validate(&schema, document, "document.graphql");
        assert!(
            checked.is_ok(),
            "{document}\n{}",
            checked.unwrap_err().errors
        );
    }
}

#[test]
fn selects_scalars_and_breaks_cycles() {
    let api = api();
    let expected = "query book($pick: Pick!) { book(pick: $pick) { id title pages price printed \
                    author { id name books { totalCount } home { id city } } reviews { totalCount } } }";
    assert_eq!(document(&api, "book"), expected);
    let nodes = "nodes { id title pages price printed author { id name books { totalCount } home { id city } } \
                 reviews { totalCount } }";
    assert!(document(&api, "books").ends_with("pageInfo { hasNextPage endCursor } totalCount } }"));
    let found = "edges { node { __typename ... on Book { id title pages price printed } ... on Song { id title seconds } \
                 ... on Author { id name } } }";
    let work =
        "{ __typename id title ... on Book { pages price printed } ... on Song { seconds } }";
    for (id, part) in [("books", nodes), ("search", found), ("work", work)] {
        let document = document(&api, id);
        assert!(document.contains(part), "{document}");
    }
    assert_eq!(document(&api, "count"), "query count { count }");
}

#[test]
fn arguments_say_what_the_schema_says() {
    let api = api();
    assert_eq!(variables(&api, "book")["required"], json!(["pick"]));
    assert_eq!(api.schemas["Pick"]["maxProperties"], 1);
    let books = variables(&api, "books");
    let books = &books["properties"];
    let filter = &api.schemas["Filter"]["properties"];
    let order = json!({ "$ref": "#/$defs/Order", "default": "NEW" });
    let made = json!({ "type": ["string", "null"], "format": "date-time" });
    let orders = json!({ "type": "string", "enum": ["NEW", "OLD"] });
    for (schema, expected) in [
        (&books["first"], json!({ "type": "integer", "default": 10 })),
        (&books["filter"], json!({ "$ref": "#/$defs/Filter" })),
        (&filter["order"], order),
        (&filter["made"], made),
        (&api.schemas["Order"], orders),
    ] {
        assert_eq!(*schema, expected);
    }
    assert_eq!(api.schemas["NewBook"]["required"], json!(["title", "by"]));
    assert!(
        document(&api, "deleteBook").starts_with("mutation deleteBook($id: ID!, $soft: Boolean)")
    );
}

#[test]
fn tools_are_made_of_queries_and_mutations() {
    let api = api();
    assert!(
        operation(&api, "book").hints.read_only
            && !operation(&api, "addBook mutation").hints.read_only
    );
    assert!(
        operation(&api, "deleteBook").hints.destructive
            && !operation(&api, "addBook mutation").hints.destructive
    );
    assert!(operation(&api, "gone").deprecated);
    assert_eq!(operation(&api, "hello").tags, ["query"]);
    assert_eq!(
        operation(&api, "books").pages.as_ref().unwrap().items,
        "/nodes"
    );
    assert_eq!(
        operation(&api, "search").pages.as_ref().unwrap().items,
        "/edges"
    );
    let overlay = Overlay {
        server: Some("https://api.example.com/graphql".to_owned()),
        ..Overlay::default()
    };
    let made = toolkit(api, "shelf", &overlay).unwrap();
    let slugs: Vec<&str> = made.calls.keys().map(String::as_str).collect();
    let expected = [
        "SHELF_ADD_BOOK",
        "SHELF_ADD_BOOK_MUTATION",
        "SHELF_BOOK",
        "SHELF_BOOKS",
        "SHELF_COUNT",
        "SHELF_DELETE_BOOK",
        "SHELF_HELLO",
        "SHELF_SEARCH",
        "SHELF_SIGN",
        "SHELF_WORK",
    ];
    assert_eq!(slugs, expected);
    assert_eq!(
        made.calls["SHELF_BOOK"].url,
        "https://api.example.com/graphql"
    );
    let said: Vec<&str> = made
        .report
        .unsupported
        .iter()
        .map(|it| it.what.as_str())
        .collect();
    assert!(
        said.contains(&"the argument `file` takes a file")
            && said.iter().any(|it| it.contains("subscriptions")),
        "{said:?}"
    );
}

#[test]
fn both_forms_of_a_schema_say_the_same() {
    let name = |name: &str| json!({ "kind": "OBJECT", "name": name });
    let introspection = json!({ "data": { "__schema": {
        "queryType": { "name": "Query" }, "mutationType": null, "subscriptionType": null,
        "types": [
            { "kind": "OBJECT", "name": "Query", "fields": [{
                "name": "book", "args": [{ "name": "n", "type": { "kind": "NON_NULL", "name": null, "ofType": { "kind": "SCALAR", "name": "Int" } }, "defaultValue": "1" }],
                "type": name("Book"), "isDeprecated": false }] },
            { "kind": "OBJECT", "name": "Book", "fields": [{ "name": "id", "args": [], "type": { "kind": "SCALAR", "name": "ID" } }] },
            { "kind": "SCALAR", "name": "Int" },
        ],
    } } });
    let read = graphql(introspection.to_string().as_bytes()).unwrap();
    let same = graphql(b"type Query { book(n: Int! = 1): Book } type Book { id: ID }").unwrap();
    assert_eq!(read, same);
    assert_eq!(
        document(&read, "book"),
        "query book($n: Int) { book(n: $n) { id } }"
    );
}

#[test]
fn what_is_no_schema_is_refused_in_words() {
    let deep = format!(
        "type Query {{ a(x: Int = {}1{}): Int }}",
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    for (given, part) in [
        ("type Query {\n a: }", "line 2"),
        ("{}", "__schema"),
        (r#"{"__schema":{"types":[{}]}}"#, "is not valid"),
        ("type Book { id: ID }", "neither a query nor a mutation"),
        ("", "cannot be read"),
        (deep.as_str(), "cannot be read"),
    ] {
        let refused = graphql(given.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
    }
}
