//! Errors of models and their input.

/// Why a model cannot be read, or cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is damaged, or is no model of its format.
    #[error("the model file is damaged: {0}")]
    Damaged(String),
    /// The file is a model, of a kind that is not evaluated here.
    #[error("{0}")]
    Unsupported(String),
    /// The file is a graph with this operator, which a library computes that is not loaded.
    #[error("the ONNX operator `{0}` needs ONNX Runtime, whose library is not set")]
    NoRuntime(String),
    /// The model is larger than what is read.
    #[error("the model has too many {what}: the limit is {most}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        most: usize,
    },
    /// The columns are not those that the model takes.
    #[error("{0}")]
    Input(String),
}

/// A result whose error is one of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A damaged file, in short for the readers.
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(shown(&what.into()))
    }

    /// Columns that are not those of the model.
    pub(crate) fn input(what: impl Into<String>) -> Self {
        Self::Input(shown(&what.into()))
    }

    /// A kind of model that is not evaluated, in short for the readers.
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(shown(&what.into()))
    }
}

/// Characters of a message.
const MESSAGE_CHARS: usize = 300;

/// A message as it may be shown: names in it come from a file, and may be as long as the file and no text at all.
fn shown(message: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    message.chars().take(MESSAGE_CHARS).map(plain).collect()
}
