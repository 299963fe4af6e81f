use toolkit_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Config {}

/// Fires.
#[trigger]
fn no_kind(config: Config, cursor: Option<u64>) -> Result<Polled<Value, u64>> {
    Ok(Polled::new(0))
}

/// Fires.
#[trigger(poll, webhook)]
fn both_kinds(config: Config, cursor: Option<u64>) -> Result<Polled<Value, u64>> {
    Ok(Polled::new(0))
}

/// Fires.
#[trigger(webhook)]
fn no_request(config: Config) -> Result<Received<Value>> {
    Ok(Received::nothing())
}

fn main() {}
