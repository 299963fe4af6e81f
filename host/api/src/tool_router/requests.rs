//! Requests of tool router sessions.

use std::collections::BTreeMap;

use app::{Error, accounts::parse_user_id, agents::Config};
use http::{
    errors,
    members::present,
    unimplemented::{Unimplemented, ignored, refused},
};
use serde::{Deserialize, de::IgnoredAny};
use utoipa::{IntoParams, ToSchema};

use super::{
    approval::PermissionsBody,
    config::{
        Change, ConnectionsBody, MultiAccountBody, MultiExecuteBody, OneOrMany, Parts, PreloadBody,
        Selection, Sent, SwitchBody, TagsBody, ToolSelection, WorkbenchBody,
    },
    inline_tools::{InlineTool, InlineToolkit, InlineTools},
};
use crate::connected_accounts::sharing::Share;

/// Declares a body with the parts of the configuration of a session. `serde` would tell no names inside
/// a flattened part, and an unknown one must be refused.
macro_rules! session_body {
    (
        $(#[$attribute:meta])*
        $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* }
    ) => {
        #[derive(Deserialize, ToSchema)]
        $(#[$attribute])*
        pub(crate) struct $name {
            $($(#[$of_field])* $field: $type,)*
            /// The toolkits of the session; all of them without it.
            #[serde(default, deserialize_with = "present")]
            toolkits: Option<Option<Selection>>,
            /// Tools by toolkit.
            #[serde(default, deserialize_with = "present")]
            tools: Option<Option<BTreeMap<String, ToolSelection>>>,
            /// Tags that tools must have, unless tags of their toolkit are set in `tools`.
            #[serde(default, deserialize_with = "present")]
            tags: Option<Option<TagsBody>>,
            /// Auth configs with which accounts are connected, by toolkit.
            #[serde(default, deserialize_with = "present")]
            auth_configs: Option<Option<BTreeMap<String, String>>>,
            /// Accounts to which the session is restricted, by toolkit.
            #[serde(default, deserialize_with = "present")]
            connected_accounts: Option<Option<BTreeMap<String, OneOrMany>>>,
            /// Management of connections by the assistant. An absent field of a change stays as it is.
            #[serde(default, deserialize_with = "present")]
            manage_connections: Option<Option<ConnectionsBody>>,
            /// The workbench. An absent field of a change stays as it is.
            #[serde(default, deserialize_with = "present")]
            workbench: Option<Option<WorkbenchBody>>,
            /// Use of several accounts of one toolkit. An absent field of a change stays as it is.
            #[serde(default, deserialize_with = "present")]
            multi_account: Option<Option<MultiAccountBody>>,
            /// Tools shown in addition to the meta tools.
            #[serde(default, deserialize_with = "present")]
            preload: Option<Option<PreloadBody>>,
            /// The search for tools.
            #[serde(default, deserialize_with = "present")]
            search: Option<Option<SwitchBody>>,
            /// Execution of tools.
            #[serde(default, deserialize_with = "present")]
            execute: Option<Option<MultiExecuteBody>>,
            /// Proxy requests.
            #[serde(default, deserialize_with = "present")]
            proxy_execute: Option<Option<SwitchBody>>,
            /// Always refused: this server does not support hooks.
            #[serde(default)]
            #[schema(schema_with = refused, required = false)]
            #[expect(dead_code, reason = "refused while it is read")]
            hooks: Unimplemented,
            /// Always refused: the parts of the configuration say what needs approval.
            #[serde(default, deserialize_with = "refuse_approval")]
            #[schema(ignore)]
            #[expect(dead_code, reason = "refused while it is read")]
            require_approval: Option<bool>,
            /// Always refused: permissions are in `experimental`.
            #[serde(default, deserialize_with = "refuse_permissions")]
            #[schema(ignore)]
            #[expect(dead_code, reason = "refused while it is read")]
            permissions: Option<bool>,
            /// Always refused: the parts of the configuration are fields of the body.
            #[serde(default, deserialize_with = "refuse_config")]
            #[schema(ignore)]
            #[expect(dead_code, reason = "refused while it is read")]
            config: Option<bool>,
            /// No effect: this server does not offer billed accounts of its own.
            #[schema(schema_with = ignored, required = false)]
            #[expect(dead_code, reason = "accepted without effect")]
            instant: Option<IgnoredAny>,
            /// Older name of `instant`.
            #[schema(schema_with = ignored, required = false)]
            #[expect(dead_code, reason = "accepted without effect")]
            premium_usage: Option<IgnoredAny>,
        }

        impl $name {
            /// Returns the change that the request asks for, with its permissions.
            fn change(self, permissions: Sent<PermissionsBody>) -> Result<Change, Error> {
                let parts = Parts {
                    toolkits: self.toolkits,
                    tools: self.tools,
                    tags: self.tags,
                    auth_configs: self.auth_configs,
                    connected_accounts: self.connected_accounts,
                    manage_connections: self.manage_connections,
                    workbench: self.workbench,
                    multi_account: self.multi_account,
                    preload: self.preload,
                    search: self.search,
                    execute: self.execute,
                    proxy_execute: self.proxy_execute,
                    permissions,
                };
                parts.try_into()
            }
        }
    };
}

session_body! {
    /// A session to create.
    #[schema(as = SessionCreateRequest)]
    CreateBody {
        /// The project's own identifier for the user.
        #[schema(required, nullable = false)]
        user_id: Option<String>,
        /// Tools of the client, permissions, and settings of a newer version of the API.
        experimental: Option<Experiment>,
    }
}

session_body! {
    /// A change of a session.
    #[schema(as = SessionPatchRequest)]
    PatchBody {
        /// Version of the configuration that the change is made for. If another one is stored, the
        /// response is 409 and nothing changes.
        expected_config_version: Option<u32>,
        /// Permissions. An absent field stays as it is.
        #[serde(default, deserialize_with = "present")]
        experimental: Option<Option<PatchedExperiment>>,
    }
}

refusals! {
    refuse_approval: "belongs in `toolkits`, `tags` or `tools.TOOLKIT`; for all tools, set `experimental.permissions.default`";
    refuse_permissions: "belongs in `experimental.permissions`";
    refuse_config: "is part of responses only: its properties, such as `toolkits`, belong at the top of the body";
}

#[derive(Default, Deserialize, ToSchema)]
#[schema(as = SessionPatchExperiment)]
struct PatchedExperiment {
    /// Permissions of calls; null removes them.
    #[serde(default, deserialize_with = "present")]
    permissions: Option<Option<PermissionsBody>>,
    /// No effect: links of a session have the address of this server.
    #[expect(dead_code, reason = "accepted without effect")]
    link_url_overwrite: Option<String>,
    /// No effect.
    #[schema(schema_with = ignored, required = false)]
    #[expect(dead_code, reason = "accepted without effect")]
    fast_mode: Option<bool>,
    /// No effect: this server does not offer a tool for feedback.
    #[schema(schema_with = ignored, required = false)]
    #[expect(dead_code, reason = "accepted without effect")]
    submit_feedback: Option<SubmitFeedback>,
    /// Always refused: this server does not support saved configurations.
    #[serde(default)]
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    session_config_id: Unimplemented,
    /// Always refused: a call that needs approval never runs if the client cannot ask for it.
    #[serde(default)]
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    no_elicitation_support_fallback: Unimplemented,
    /// Always refused: it is decided when the session is created.
    #[serde(default)]
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    restrict_egress_to_service: Unimplemented,
}

#[derive(Deserialize)]
struct SubmitFeedback {
    /// No effect.
    #[expect(dead_code, reason = "accepted without effect")]
    enable: Option<bool>,
}

impl PatchBody {
    /// Returns the version for which the change is made, if the request names one.
    pub(crate) fn expected_version(&self) -> Option<u32> {
        self.expected_config_version
    }

    /// Returns the change that the request asks for.
    pub(crate) fn into_change(mut self) -> Result<Change, Error> {
        let permissions = match self.experimental.take() {
            Some(Some(sent)) => sent.permissions,
            Some(None) => Some(None),
            None => None,
        };
        self.change(permissions)
    }
}

/// Tools that the client itself runs.
#[derive(Deserialize, ToSchema)]
#[schema(as = AttachSession)]
pub(crate) struct AttachBody {
    /// Tools of the client.
    pub experimental: Option<ClientTools>,
}

/// Tools that the client itself runs, which it sends with each request.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = SessionClientTools)]
pub(crate) struct ClientTools {
    custom_toolkits: Option<Vec<InlineToolkit>>,
    custom_tools: Option<Vec<InlineTool>>,
}

impl ClientTools {
    /// Checks the client's own tools, if the request has any.
    pub(crate) fn checked(sent: Option<Self>) -> Result<Option<InlineTools>, Error> {
        let sent = sent.unwrap_or_default();
        let toolkits = sent.custom_toolkits.unwrap_or_default();
        InlineTools::new(toolkits, sent.custom_tools.unwrap_or_default())
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[schema(as = SessionExperiment)]
struct Experiment {
    custom_toolkits: Option<Vec<InlineToolkit>>,
    custom_tools: Option<Vec<InlineTool>>,
    /// Permissions of calls.
    permissions: Option<PermissionsBody>,
    /// True if scripts may reach no server but this one, which always holds: no workbench has a network.
    restrict_egress_to_service: Option<bool>,
    /// No effect.
    #[expect(dead_code, reason = "accepted without effect")]
    assistive_prompt_config: Option<AssistivePromptConfig>,
    /// No effect: links of a session have the address of this server.
    #[expect(dead_code, reason = "accepted without effect")]
    link_url_overwrite: Option<String>,
    /// No effect.
    #[schema(schema_with = ignored, required = false)]
    #[expect(dead_code, reason = "accepted without effect")]
    fast_mode: Option<bool>,
    /// No effect: this server does not offer a tool for feedback.
    #[schema(schema_with = ignored, required = false)]
    #[expect(dead_code, reason = "accepted without effect")]
    submit_feedback: Option<SubmitFeedback>,
    /// Always refused: this server does not support saved configurations.
    #[serde(default)]
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    session_config_id: Unimplemented,
    /// Always refused: a call that needs approval never runs if the client cannot ask for it.
    #[serde(default)]
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    no_elicitation_support_fallback: Unimplemented,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SessionAssistivePromptConfig)]
struct AssistivePromptConfig {
    /// No effect.
    #[expect(dead_code, reason = "accepted without effect")]
    user_timezone: Option<String>,
}

impl CreateBody {
    /// Returns the configuration of the session, and the client's own tools.
    pub(crate) fn into_config(mut self) -> Result<(Config, Option<InlineTools>), Error> {
        let experiment = self.experimental.take().unwrap_or_default();
        let inline = ClientTools::checked(Some(ClientTools {
            custom_toolkits: experiment.custom_toolkits,
            custom_tools: experiment.custom_tools,
        }));
        let user_id = session_user(self.user_id.as_deref().unwrap_or_default());
        let change = self.change(Some(experiment.permissions));
        let ((user_id, inline), change) = errors::both(errors::both(user_id, inline), change)?;
        let mut config = Config {
            user_id,
            restrict_egress: experiment.restrict_egress_to_service.unwrap_or(false),
            ..Config::default()
        };
        change.apply(&mut config)?;
        Ok((config, inline))
    }
}

/// Returns the user of a new session.
pub(super) fn session_user(sent: &str) -> Result<String, Error> {
    if sent.trim().is_empty() {
        return Err(errors::session_invalid("user_id: is required"));
    }
    if sent.contains('\0') {
        let problem = "user_id: must not contain the character U+0000";
        return Err(errors::session_invalid(problem));
    }
    parse_user_id(Some(sent))
}

/// Filters of the toolkits of a session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolkitQuery {
    /// These toolkits, whether the session permits them or not.
    #[serde(default)]
    pub toolkits: Vec<String>,
    /// Only those for which the user has an active account.
    #[serde(default, deserialize_with = "present")]
    pub is_connected: Option<bool>,
    /// Part of slug, name or description.
    pub search: Option<String>,
}

/// Toolkit to connect.
#[derive(Deserialize, ToSchema)]
#[schema(as = LinkInSession)]
pub(crate) struct LinkBody {
    pub toolkit: String,
    /// URL to which the user's browser is redirected at the end; that of the session without it.
    pub callback_url: Option<String>,
    pub alias: Option<String>,
    pub experimental: Option<Share>,
}
