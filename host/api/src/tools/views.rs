//! Views of the catalog of tools.

use app::{
    agents::meta::MetaTool,
    catalog::{BASE, Release, ResolvedTool, Snapshot},
};
use http::branding::{self, Branding};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{client_schema, converter::Converter, scopes::ScopeRequirements};
use crate::toolkits::logo_url;

/// Title of the schema of a response without a title.
const RESPONSE_TITLE: &str = "Answer";
/// Status of every tool.
const ACTIVE_STATUS: &str = "active";

/// The slugs of all tools.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolSlugs)]
pub(crate) struct Slugs(pub Vec<String>);

/// A tool in one version.
#[derive(Serialize, ToSchema)]
#[schema(as = Tool)]
pub(crate) struct View {
    slug: String,
    name: String,
    description: String,
    human_description: String,
    toolkit: ToolkitView,
    /// A JSON Schema.
    #[schema(value_type = Map<String, Value>)]
    input_parameters: Value,
    /// A JSON Schema of the whole response of an execution.
    #[schema(value_type = Map<String, Value>)]
    output_parameters: Value,
    no_auth: bool,
    version: String,
    available_versions: Vec<String>,
    scopes: Vec<String>,
    #[schema(required)]
    scope_requirements: Option<ScopeRequirements>,
    tags: Vec<String>,
    /// Always `active`, for clients that filter by it.
    status: &'static str,
    is_deprecated: bool,
    deprecated: DeprecatedView,
}

view! {
    #[schema(as = ToolToolkit)]
    pub(crate) struct ToolkitView from (release: &Release) {
        slug: String = release.slug.to_string(),
        name: String = release.name.clone(),
        logo: String = logo_url(release),
    }
}

view! {
    #[schema(as = ToolDeprecated)]
    struct DeprecatedView from (
        name: &str,
        version: &str,
        versions: Vec<String>,
        is_deprecated: bool,
        logo: String,
    ) {
        #[serde(rename = "displayName")] display_name: String = name.to_owned(),
        version: String = version.to_owned(),
        available_versions: Vec<String> = versions,
        is_deprecated: bool = is_deprecated,
        toolkit: ToolkitLogo = ToolkitLogo { logo },
    }
}

#[derive(Serialize, ToSchema)]
struct ToolkitLogo {
    logo: String,
}

impl View {
    /// Builds the view of a tool for a client with this converter.
    ///
    /// # Errors
    /// If the schemas of the tool cannot be read.
    pub(crate) fn new(
        catalog: &Snapshot,
        found: &ResolvedTool,
        converter: Converter,
    ) -> Result<Self, app::Error> {
        let ResolvedTool { release, tool } = found;
        let versions: Vec<_> = catalog
            .toolkit(&release.slug)
            .map(|toolkit| toolkit.versions())
            .unwrap_or_default()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let version = release.version.as_str();
        let is_deprecated = release.deprecated_at.is_some();
        let input = serde_json::from_str(tool.input.text()?.get()).unwrap_or_default();
        Ok(Self {
            slug: tool.slug.to_string(),
            name: tool.name.clone(),
            description: tool.description.clone(),
            human_description: tool.description.clone(),
            toolkit: ToolkitView::new(release),
            input_parameters: converter.fit(simple(input, &tool.name)),
            output_parameters: simple(tool.response_schema()?, RESPONSE_TITLE),
            no_auth: tool.no_auth,
            version: version.to_owned(),
            available_versions: versions.clone(),
            scopes: tool.scopes.clone(),
            scope_requirements: ScopeRequirements::new(tool),
            tags: tool.labels().map(str::to_owned).collect(),
            status: ACTIVE_STATUS,
            is_deprecated,
            deprecated: DeprecatedView::new(
                &tool.name,
                version,
                versions,
                is_deprecated,
                logo_url(release),
            ),
        })
    }

    /// Builds the view of a meta tool for a client with this converter.
    pub(crate) fn of_meta_tool(tool: MetaTool, branding: &Branding, converter: Converter) -> Self {
        let definition = tool.definition();
        let description = branding.rename_slugs(&definition.description).into_owned();
        let versions = vec![BASE.to_owned()];
        Self {
            slug: branding.rename(tool.slug()).into_owned(),
            name: definition.name.clone(),
            human_description: description.clone(),
            description,
            toolkit: ToolkitView {
                slug: branding.rename("SERVICE").into_owned(),
                name: branding.rename(branding::DEFAULT_BRAND).into_owned(),
                logo: String::new(),
            },
            input_parameters: converter.fit(simple(definition.input.clone(), &definition.name)),
            output_parameters: simple(definition.response_schema(), RESPONSE_TITLE),
            no_auth: true,
            version: BASE.to_owned(),
            available_versions: versions.clone(),
            scopes: Vec::new(),
            scope_requirements: None,
            tags: definition.tags.clone(),
            status: ACTIVE_STATUS,
            is_deprecated: false,
            deprecated: DeprecatedView::new(&definition.name, BASE, versions, false, String::new()),
        }
    }
}

/// Returns a schema in the form for clients, with a title.
fn simple(mut schema: Value, title: &str) -> Value {
    client_schema::simplify(&mut schema, title);
    if let Value::Object(members) = &mut schema {
        members.entry("title").or_insert_with(|| title.into());
    }
    schema
}
