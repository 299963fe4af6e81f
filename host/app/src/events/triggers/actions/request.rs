//! Requested actions. What a request leaves out about the user and the account is kept from the
//! stored action, so that a change of the arguments does not make the tool run with another account.

use super::Action;
use crate::App;

/// A requested action.
#[derive(Debug)]
pub struct ActionRequest {
    /// The action, without the user and the account that it keeps.
    pub action: Action,
    /// True to keep the user of the stored action.
    pub keeps_user: bool,
    /// True to keep the account of the stored action, if the tool is of the same toolkit.
    pub keeps_account: bool,
}

impl ActionRequest {
    /// Returns the action that replaces the stored one.
    pub(in crate::events::triggers) fn replacing(
        self,
        app: &App,
        stored: Option<Action>,
    ) -> Action {
        let mut action = self.action;
        let Some(stored) = stored else {
            return action;
        };
        if self.keeps_user {
            action.user_id = stored.user_id;
        }
        let catalog = app.catalog.snapshot();
        let toolkit = |tool: &str| catalog.toolkit_of(tool).map(|toolkit| toolkit.slug.clone());
        if self.keeps_account && toolkit(&action.tool) == toolkit(&stored.tool) {
            action.account = stored.account;
        }
        action
    }
}
