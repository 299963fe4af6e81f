//! Domains that mail is sent from.

use toolkit_sdk::prelude::*;

use crate::api::{API, Id, Page, Part, read};

/// Where mail of a domain is sent from.
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
    /// `verified` domains can send; others are `not_started`, `pending`, `failed` or `temporary_failure`.
    status: String,
    region: String,
    created_at: String,
    /// What to enter at the domain's DNS provider; only with a single domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    records: Vec<Record>,
}

/// A DNS record.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Record {
    /// What it is for: `SPF`, `DKIM` and so on.
    record: String,
    name: String,
    /// `MX`, `TXT` or `CNAME`.
    #[serde(rename = "type")]
    kind: String,
    value: String,
    #[serde(default)]
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<String>,
    /// Of an `MX` record.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
}

/// Lists the domains of the account and whether each is verified, that is, may be used in `from`.
#[tool(read_only, idempotent, important, example = r#"{}"#)]
pub(crate) fn list_domains(input: Part) -> Result<Page<Domain>> {
    read(API.get("/domains"), &input)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DomainId {
    /// What `list_domains` or `create_domain` answered.
    #[schemars(length(min = 1))]
    id: String,
}

/// Gets one domain with the DNS records that it needs and the status of each.
#[tool(read_only, idempotent, example = r#"{"id": "d91cd9bd-1176-453e-8fc1-35364d380206"}"#)]
pub(crate) fn get_domain(input: DomainId) -> Result<Domain> {
    API.get("/domains/{id}").path("id", &input.id).send()?.json()
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct NewDomain {
    /// For example `mail.acme.com`.
    name: String,
    /// Left out: North Virginia.
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

/// Adds a domain to send from. Answers the DNS records to enter at its provider; call `verify_domain` when they are there.
#[tool(example = r#"{"name": "mail.acme.com", "region": "eu-west-1"}"#)]
pub(crate) fn create_domain(input: NewDomain) -> Result<Domain> {
    API.post("/domains").json(&input).send()?.json()
}

/// Has Resend look for the DNS records of a domain. That takes a while: see `get_domain` for how it ends.
#[tool(idempotent, example = r#"{"id": "d91cd9bd-1176-453e-8fc1-35364d380206"}"#)]
pub(crate) fn verify_domain(input: DomainId) -> Result<Id> {
    API.post("/domains/{id}/verify").path("id", &input.id).send()?.json()
}
