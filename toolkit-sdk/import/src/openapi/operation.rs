//! Reads operations.

use serde_json::{Map, Value};

use super::{Reader, pages, servers};
use crate::{Operation, Unsupported};

impl<'a> Reader<'a> {
    /// Reads one operation.
    pub(super) fn operation(
        &mut self,
        path: &str,
        method: &str,
        item: &'a Map<String, Value>,
        own: &'a Map<String, Value>,
    ) -> Operation {
        let mut made = self.outline(path, method, own);
        made.server = own
            .get("servers")
            .or_else(|| item.get("servers"))
            .and_then(|it| {
                servers(&serde_json::json!({ "servers": it }))
                    .into_iter()
                    .next()
            });
        self.parameters(&mut made, item, own);
        if let Some(body) = own.get("requestBody") {
            self.body(&mut made, body);
        }
        let response = self.answer(&mut made, own);
        made.pages = pages::detect(&made, response, &mut |schema| self.flat(schema));
        let needed = self.security.requirements_of(own.get("security"));
        made.scopes = needed.scopes;
        made.no_auth = needed.none;
        if let Some(scheme) = needed.unsupported {
            let what = format!("the security scheme `{scheme}`, which the operation requires");
            self.api
                .unsupported
                .push(Unsupported::unusable(&made.id, what));
        }
        if own
            .get("callbacks")
            .and_then(Value::as_object)
            .is_some_and(|callbacks| !callbacks.is_empty())
        {
            self.part(&made.id, "its callbacks");
        }
        made
    }
}
