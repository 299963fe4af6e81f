//! Tools without code: executes the call that a plan describes.
//!
//! A toolkit that was imported from the description of an API has a plan in the data of its module
//! (`manifest::plan`). Each call reads the part of the plan that it needs, builds one request from
//! the arguments, and returns the response as an object.

mod answer;
mod body;
mod mcp;
mod pages;
mod style;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use manifest::plan::{self, Body, Call, ParameterIn};
use serde_json::{Map, Value};

use crate::http::{Client, Request};
use crate::{Result, ToolError, context};

/// Arguments of a call that no part of the request has used yet.
type Arguments = Map<String, Value>;

/// Location of the plan: address and length in the module's memory. `toolkit build` writes both.
/// Without a plan they are 0.
#[repr(C)]
pub struct PlanPlace {
    address: AtomicU32,
    length: AtomicU32,
}

impl PlanPlace {
    /// Returns the location of a toolkit without a plan.
    #[must_use]
    pub const fn empty() -> Self {
        // Atomics are never treated as constants, so the values that the build writes into the
        // module's data are read.
        Self {
            address: AtomicU32::new(0),
            length: AtomicU32::new(0),
        }
    }

    #[cfg(target_arch = "wasm32")]
    #[expect(
        unsafe_code,
        reason = "the plan is written into the module's data after compilation"
    )]
    fn bytes(&self) -> &'static [u8] {
        let address = self.address.load(Relaxed) as usize;
        let length = self.length.load(Relaxed) as usize;
        if address == 0 {
            return &[];
        }
        // SAFETY: The build puts data of this length at this address, beyond all data that the
        // compiler knows, and no code writes to it.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), length) }
    }

    /// Returns no bytes: only a module has data at fixed addresses.
    #[cfg(not(target_arch = "wasm32"))]
    fn bytes(&self) -> &'static [u8] {
        let _ = (self.address.load(Relaxed), self.length.load(Relaxed));
        &[]
    }
}

/// Runs a tool of the plan, or returns `None` if the plan does not contain the tool.
pub(crate) fn execute(
    place: &PlanPlace,
    client: Option<Client>,
    tool: &str,
    arguments: &[u8],
) -> Option<Result<Vec<u8>>> {
    let call = plan::find(place.bytes(), tool)?;
    Some(run(&call, client, arguments))
}

/// Executes a call.
fn run(call: &Call, client: Option<Client>, arguments: &[u8]) -> Result<Vec<u8>> {
    let mut arguments: Arguments = crate::rt::arguments(arguments)?;
    let wanted = call
        .pages
        .as_ref()
        .and_then(|pages| arguments.remove(&pages.argument))
        .and_then(|it| it.as_u64());
    let given = wanted.map(|_| arguments.clone()).unwrap_or_default();
    let request = request(call, client, &mut arguments)?;
    if let Some(Body::Mcp { tool, renamed }) = &call.body {
        let arguments = body::members(&mut arguments, &BTreeMap::new(), renamed);
        return mcp::call(&request, tool, arguments);
    }
    match (&call.pages, wanted) {
        (Some(pages), Some(wanted)) => {
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            pages::read(request, call, pages, wanted, &given)
        }
        _ => answer::convert(request, call),
    }
}

/// Builds the request of a call from its arguments.
fn request(call: &Call, client: Option<Client>, arguments: &mut Arguments) -> Result<Request> {
    let mut url = call.url.clone();
    let mut queries = Vec::new();
    let mut headers = Vec::new();
    for parameter in &call.parameters {
        let argument = parameter.argument.as_ref().unwrap_or(&parameter.name);
        let given = arguments.remove(argument).filter(|value| !value.is_null());
        let Some(value) = given.or_else(|| parameter.default.clone()) else {
            continue;
        };
        match parameter.place {
            ParameterIn::Path => style::fill(&mut url, parameter, &value)?,
            ParameterIn::Query => style::query(&mut queries, parameter, &value),
            ParameterIn::Header => {
                headers.push((parameter.name.as_str(), style::header(parameter, &value)))
            }
        }
    }
    fill_fields(&mut url, call);
    let mut request = Request::new(method(&call.method)?, url);
    if let Some(client) = client {
        request = client.shared(request);
    }
    for (name, value) in queries {
        request = request.query(&name, value);
    }
    let fixed = call
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()));
    for (name, value) in fixed.chain(headers) {
        request = request.header(name, value);
    }
    if call.anonymous {
        request = request.anonymous();
    }
    match &call.body {
        Some(body) => body::write(request, body, arguments),
        None => Ok(request),
    }
}

/// Fills the fields that the account leaves empty with their default values. The request reports
/// the fields that are still missing after that.
fn fill_fields(url: &mut String, call: &Call) {
    for (name, value) in &call.fields {
        if context::field(name).is_none_or(|value| value.is_empty()) {
            *url = url.replace(&format!("{{{name}}}"), value);
        }
    }
}

fn method(name: &str) -> Result<&'static str> {
    manifest::HTTP_METHODS
        .into_iter()
        .find(|known| *known == name)
        .ok_or_else(|| ToolError::internal(format!("the plan has the unknown method `{name}`")))
}

#[cfg(test)]
mod tests;
