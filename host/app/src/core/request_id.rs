//! Id of a request, with its position in a trace.

use std::{ops::Deref, sync::Arc};

use super::trace::SpanContext;

/// The id of the request that caused an execution, for the log. It also leads from the span of the
/// request to those of its executions.
#[derive(Debug, Clone, Default)]
pub struct RequestId {
    text: Arc<str>,
    span: Option<SpanContext>,
}

impl RequestId {
    /// Creates the id of a request. The span is `None` if the request is not traced.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>, span: Option<SpanContext>) -> Self {
        let text = text.into();
        Self { text, span }
    }

    /// Returns the span of the request, or `None` if it is not traced.
    #[must_use]
    pub fn span(&self) -> Option<SpanContext> {
        self.span
    }

    /// Returns the text of the id.
    #[must_use]
    pub fn into_text(self) -> String {
        String::from(&*self.text)
    }
}

impl Deref for RequestId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// Background work has no request. It is named instead of one, and starts its own trace.
impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::new(text, None)
    }
}
