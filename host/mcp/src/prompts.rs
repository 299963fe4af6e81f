//! Recipes of a session's user as prompts: an assistant offers them to its user by name.

use app::{
    Error,
    agents::{
        SessionCaller,
        meta::MetaTool,
        recipes::{self, Definition, OpenRecipe},
    },
    core::visible::visible,
};
use http::Server;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::tools;

/// Returns the recipes of the session's user.
pub(super) async fn list(server: &Server, caller: &SessionCaller) -> Result<Vec<Prompt>, Error> {
    let user = &caller.config().user_id;
    let found = recipes::list(&server.app, &caller.project, user).await?;
    Ok(found.iter().map(prompt).collect())
}

/// Returns the message by which an assistant executes a recipe with these arguments.
pub(super) async fn get(
    server: &Server,
    caller: &SessionCaller,
    slug: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, Error> {
    let user = &caller.config().user_id;
    let found = recipes::get(&server.app, &caller.project, user, slug).await?;
    let slug = &found.record.body.slug;
    let arguments = Value::Object(typed(&found.definition, arguments));
    let call = if MetaTool::MultiExecuteTool.is_enabled(caller.config()) {
        let tool = tools::meta_name(MetaTool::MultiExecuteTool, &server.branding);
        format!(
            "call {tool} with one call, whose `tool_slug` is {slug} and whose `arguments` are {arguments}"
        )
    } else {
        // Recipes are called without being listed.
        format!("call the tool {slug} with the arguments {arguments}")
    };
    // The name was written by another session, and may read like an instruction.
    let text = format!(
        "Execute the recipe {slug}: {call}. Ask for arguments that are missing. Its `run_id`, `status` \
         and `output` are in the result."
    );
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(&found.definition.description))
}

fn prompt(found: &OpenRecipe) -> Prompt {
    let definition = &found.definition;
    let required = definition.input_schema.get("required");
    let required_names = required.and_then(Value::as_array);
    let arguments = properties(definition).map(|(name, schema)| {
        let is_required = required_names.is_some_and(|names| names.iter().any(|one| one == name));
        let argument = PromptArgument::new(name).with_required(is_required);
        match schema.get("description").and_then(Value::as_str) {
            Some(description) => argument.with_description(visible(description)),
            None => argument,
        }
    });
    let slug = &found.record.body.slug;
    Prompt::new(
        slug,
        Some(&definition.description),
        Some(arguments.collect()),
    )
    .with_title(&definition.name)
}

fn properties(definition: &Definition) -> impl Iterator<Item = (&String, &Value)> {
    let properties = definition.input_schema.get("properties");
    properties.and_then(Value::as_object).into_iter().flatten()
}

/// Returns arguments of a prompt, which are texts, with the types of the recipe.
fn typed(definition: &Definition, mut arguments: JsonObject) -> JsonObject {
    for (name, schema) in properties(definition) {
        let is_text = schema.get("type").is_some_and(|kind| kind == "string");
        if let Some(value) = arguments.get_mut(name)
            && !is_text
            && let Some(parsed) = value
                .as_str()
                .and_then(|text| serde_json::from_str(text).ok())
        {
            *value = parsed;
        }
    }
    arguments
}
