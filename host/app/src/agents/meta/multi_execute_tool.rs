//! Executes several tools in parallel. Calls fail independently: an error of one is a part of its
//! result.
//!
//! The calls run on several threads, so that they use all processors, and count toward the share of the
//! project. They share one deadline, so that a hanging call does not withhold the results of the others.
//! The result keeps the order of the calls. Data too large for the context of a model becomes a file of
//! the project, and the result has a link to it. All results become a file of the workbench if the call
//! asks for it.

mod batch;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use sandbox::FileChange;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use self::batch::{Batch, CallResult};
use super::{ARGUMENTS_NAME, MetaTool, Workflow};
use crate::{
    App, Error, Result,
    agents::{
        SessionCaller, errors,
        selection::EMPTY_ACCOUNT,
        session_files::{self, SANDBOX_FOLDER},
    },
    core::{ids::random_text, json, spelling::misspelling},
    files,
};

/// Maximum number of calls.
pub const MAX_CALLS: usize = 50;
/// Folder of the files of the workbench that have results.
const RESULTS_FOLDER: &str = "tool_results";
/// Number of random characters in the name of such a file.
const FILE_NAME_CHARS: usize = 8;
/// Estimated size of a result without its data, in bytes of JSON.
const RESULT_OVERHEAD_BYTES: usize = 256;
/// Copies of the data of all calls that are held at the end: each alone, and in the result or the file.
const RESULT_COPIES: usize = 2;
/// Size of the data of a call from which it becomes a file, in bytes, unless the session sets another.
pub const MAX_INLINE_BYTES: usize = 80 << 10;

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    tools: Vec<CallArguments<'a>>,
    #[serde(default)]
    sync_response_to_workbench: bool,
    session_id: Option<String>,
}

/// One call. A misspelled field is refused.
struct CallArguments<'a> {
    tool_slug: String,
    arguments: &'a RawValue,
    /// Id or alias of the account to use; the default account of the session without it.
    account: Option<String>,
}

impl<'de: 'a, 'a> Deserialize<'de> for CallArguments<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        from.deserialize_map(CallVisitor)
    }
}

struct CallVisitor;

impl<'de> Visitor<'de> for CallVisitor {
    type Value = CallArguments<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut members: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let (mut tool_slug, mut arguments) = (None, None);
        let mut account: Option<String> = None;
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                "tool_slug" => tool_slug = Some(members.next_value()?),
                "arguments" => arguments = Some(members.next_value()?),
                "account" => account = members.next_value_seed(AccountName)?,
                unknown => members.next_value_seed(UnknownField(unknown))?,
            }
        }
        Ok(CallArguments {
            tool_slug: tool_slug.ok_or_else(|| A::Error::missing_field("tool_slug"))?,
            arguments: arguments.ok_or_else(|| A::Error::missing_field("arguments"))?,
            account,
        })
    }
}

/// A field that a call does not have. It is ignored unless it is misspelled.
struct UnknownField<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for UnknownField<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> std::result::Result<(), D::Error> {
        match misspelling(self.0, &["tool_slug", "arguments", "account"]) {
            Some(problem) => Err(D::Error::custom(problem)),
            None => IgnoredAny::deserialize(value).map(drop),
        }
    }
}

/// The name of the account of a call. An empty one is refused, because another account would be used.
struct AccountName;

impl<'de> DeserializeSeed<'de> for AccountName {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        value: D,
    ) -> std::result::Result<Option<String>, D::Error> {
        match Option::<String>::deserialize(value)? {
            Some(name) if name.trim().is_empty() => Err(D::Error::custom(EMPTY_ACCOUNT)),
            name => Ok(name),
        }
    }
}

#[derive(Serialize)]
struct Data<'a> {
    results: Vec<CallResult<'a>>,
    total_count: usize,
    success_count: usize,
    error_count: usize,
    session: Workflow,
    remote_file_info: Option<RemoteFile>,
    next_steps: Option<String>,
}

/// A file of the workbench that has all results.
#[derive(Serialize)]
struct RemoteFile {
    file_path: String,
    mimetype: &'static str,
    size: usize,
}

/// Executes the tools, and returns the data and the failure.
pub(super) async fn run(
    app: &App,
    caller: &SessionCaller,
    arguments: &Bytes,
) -> Result<(Bytes, Option<String>)> {
    let request: Arguments<'_> =
        serde_json::from_slice(arguments).map_err(|_| invalid(problems(arguments)))?;
    if !(1..=MAX_CALLS).contains(&request.tools.len()) {
        let problem = format!("tools: must have 1 to {MAX_CALLS} calls");
        return Err(invalid(vec![problem]));
    }
    let bytes = request.tools.len() * MAX_INLINE_BYTES * RESULT_COPIES;
    let _reserved = files::reserve_memory(app, &caller.project.tenant, bytes as u64)?;
    let timeout = app.sessions.multi_execute_timeout;
    let batch = Arc::new(Batch::new(request.tools, arguments, timeout));
    batch.run(app, caller).await?;
    let results: Vec<_> = batch.results().collect();
    let failed = results.iter().filter(|result| result.error.is_some());
    let error_count = failed.count();
    let total_count = results.len();
    let success_count = total_count - error_count;
    let (mut remote_file_info, mut next_steps) = (None, None);
    if request.sync_response_to_workbench && caller.config().workbench.enabled {
        // The tools ran, so the caller gets their results in either case.
        match results_as_file(app, caller, &results).await {
            Ok(file) => remote_file_info = Some(file),
            Err(cause) => {
                let reason = format!("The results are no file of the workbench: {cause}");
                next_steps = Some(reason);
            }
        }
    }
    let data = Data {
        results,
        total_count,
        success_count,
        error_count,
        session: Workflow::new(request.session_id.as_deref()),
        remote_file_info,
        next_steps,
    };
    let error =
        (error_count > 0).then(|| format!("{error_count} out of {total_count} calls failed"));
    Ok((data.to_json()?, error.filter(|_| success_count == 0)))
}

fn invalid(problems: Vec<String>) -> Error {
    errors::arguments_invalid(MetaTool::MultiExecuteTool.slug(), problems)
}

/// Returns the problems of arguments that cannot be read.
fn problems(arguments: &[u8]) -> Vec<String> {
    match json::parse(arguments) {
        Ok(value) => json::all_problems(value, ARGUMENTS_NAME, |reader| {
            Arguments::deserialize(reader).err()
        }),
        Err(problem) => vec![problem.line(ARGUMENTS_NAME)],
    }
}

/// Returns the number of characters of UTF-8 data, or the number of bytes of other data.
fn char_count(data: &[u8]) -> usize {
    str::from_utf8(data).map_or(data.len(), |text| text.chars().count())
}

impl Data<'_> {
    fn to_json(&self) -> Result<Bytes> {
        let responses = self.results.iter().filter_map(|result| result.response);
        let data_bytes: usize = responses.map(|response| response.data.0.len()).sum();
        let capacity = data_bytes + RESULT_OVERHEAD_BYTES * self.results.len();
        let mut json = Vec::<u8>::with_capacity(capacity);
        serde_json::to_writer(&mut json, self).map_err(errors::internal)?;
        Ok(json.into())
    }
}

/// Stores results as a file of the workbench.
async fn results_as_file(
    app: &App,
    caller: &SessionCaller,
    results: &[CallResult<'_>],
) -> Result<RemoteFile> {
    let content = serde_json::to_vec(results).map_err(errors::internal)?;
    let size = content.len();
    let path = format!("{RESULTS_FOLDER}/{}.json", random_text(FILE_NAME_CHARS));
    let change = FileChange {
        path: path.clone(),
        content: Some(content.into()),
    };
    session_files::apply(app, caller, vec![change], None, None).await?;
    Ok(RemoteFile {
        file_path: format!("{SANDBOX_FOLDER}/{path}"),
        mimetype: "application/json",
        size,
    })
}

/// Returns data that fits into the context of a model as it is, and stores other data as a file.
async fn inline_or_file(
    app: &App,
    caller: &SessionCaller,
    (toolkit, tool): (&str, &str),
    data: Bytes,
) -> Result<Bytes> {
    let threshold = caller.config().workbench.auto_offload_threshold;
    if data.len() <= MAX_INLINE_BYTES
        && !threshold.is_some_and(|max| char_count(&data) as f64 > max)
    {
        return Ok(data);
    }
    let stored = files::result_as_file(app, &caller.project, (toolkit, tool), data);
    // On the heap, so that other calls do not carry the larger future.
    let [data, _] = Box::pin(stored).await?;
    Ok(data)
}
