//! Running calls and prepared descriptions of MCP endpoints, which outlive a request.

use app::App;

use super::{
    calls::{self, Calls},
    descriptions::Descriptions,
};

/// State that the MCP endpoints of a server share.
#[derive(Default)]
pub struct State {
    /// Calls of tools that are running.
    pub(super) calls: Calls,
    /// Descriptions of tools for clients.
    pub(super) descriptions: Descriptions,
}

impl State {
    /// Cancels the calls whose cancellations other servers pass on. Never returns.
    pub async fn watch_cancellations(&self, app: &App) {
        calls::watch_cancellations(app, &self.calls).await;
    }
}
