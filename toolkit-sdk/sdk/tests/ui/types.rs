use toolkit_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Input {}

/// Reads.
#[tool]
fn not_a_result(_input: Input) -> Value {
    json!({})
}

fn main() {}
