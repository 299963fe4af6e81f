//! Sending domains.

use toolkit_sdk::prelude::*;

use crate::api::{API, Id, Page, Part, read};

/// Region from which mail of a domain is sent.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
enum Region {
    /// North Virginia.
    #[serde(rename = "us-east-1")]
    UsEast1,
    /// Ireland.
    #[serde(rename = "eu-west-1")]
    EuWest1,
    /// São Paulo.
    #[serde(rename = "sa-east-1")]
    SaEast1,
    /// Tokyo.
    #[serde(rename = "ap-northeast-1")]
    ApNortheast1,
}

/// A domain.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Domain {
    id: String,
    name: String,
    /// `verified` domains can send; others are `not_started`, `pending`, `failed` or
    /// `temporary_failure`.
    status: String,
    region: String,
    created_at: String,
    /// DNS records to enter at the domain's DNS provider; only in responses with a single domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    records: Vec<Record>,
}

/// A DNS record.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Record {
    /// Purpose of the record: `SPF`, `DKIM` and so on.
    record: String,
    name: String,
    /// Type of the record: `MX`, `TXT` or `CNAME`.
    #[serde(rename = "type")]
    kind: String,
    value: String,
    #[serde(default)]
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<String>,
    /// Priority of an `MX` record.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
}

/// Lists the domains of the account with their status. Only verified domains may be used in `from_email`.
#[tool(read_only, idempotent, important, example = r#"{}"#)]
pub(crate) fn list_domains(input: Part) -> Result<Page<Domain>> {
    read(API.get("/domains"), &input)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DomainId {
    /// Id of the domain, from `list_domains` or `create_domain`.
    #[schemars(length(min = 1))]
    id: String,
}

/// Gets one domain with the DNS records that it needs and the status of each.
#[tool(
    read_only,
    idempotent,
    example = r#"{"id": "d91cd9bd-1176-453e-8fc1-35364d380206"}"#
)]
pub(crate) fn get_domain(input: DomainId) -> Result<Domain> {
    API.get("/domains/{id}")
        .path("id", &input.id)
        .send()?
        .json()
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct NewDomain {
    /// Name of the domain, for example `mail.acme.com`.
    name: String,
    /// Region. Defaults to North Virginia.
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

/// Adds a sending domain. Returns the DNS records to enter at its DNS provider; call
/// `verify_domain` after that.
#[tool(example = r#"{"name": "mail.acme.com", "region": "eu-west-1"}"#)]
pub(crate) fn create_domain(input: NewDomain) -> Result<Domain> {
    API.post("/domains").json(&input).send()?.json()
}

/// Starts the verification of a domain's DNS records by Resend. That takes a while: `get_domain`
/// returns the result.
#[tool(
    idempotent,
    example = r#"{"id": "d91cd9bd-1176-453e-8fc1-35364d380206"}"#
)]
pub(crate) fn verify_domain(input: DomainId) -> Result<Id> {
    API.post("/domains/{id}/verify")
        .path("id", &input.id)
        .send()?
        .json()
}
