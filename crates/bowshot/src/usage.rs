//! Usage errors: exit code 2, with a hint.

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Usage {
    message: String,
    hint: Option<String>,
}

impl Usage {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl From<bowshot_api::Error> for Usage {
    fn from(error: bowshot_api::Error) -> Self {
        Self { message: error.message().to_owned(), hint: error.hint().map(str::to_owned) }
    }
}
