use toolkit_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Input {}

#[tool(read_only)]
fn no_description(input: Input) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool(readonly)]
fn unknown_word(input: Input) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool(read_only, destructive)]
fn contradiction(input: Input) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool]
fn two_arguments(first: String, second: String) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool]
async fn waits(input: Input) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool]
fn no_answer(input: Input) {}

/// Reads.
#[tool(example = r#"{"name": }"#, tags = "one")]
fn broken_example(input: Input) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool(egress("https://api.example.com"))]
fn broken_egress(input: Input) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool(slug = "List items")]
fn broken_slug(input: Input) -> Result<Value> {
    Ok(json!({}))
}

/// Reads.
#[tool]
struct NotAFunction;

fn main() {}
