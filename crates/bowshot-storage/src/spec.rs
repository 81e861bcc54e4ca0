//! What the operator wrote on the command line: `PATH` or `NAME=PATH`.

use crate::Error;
use std::path::PathBuf;
use std::str::FromStr;

/// One source of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// The table's name, if the operator chose it.
    pub name: Option<String>,
    /// A file or a folder.
    pub path: PathBuf,
}

impl FromStr for SourceSpec {
    type Err = Error;

    /// `NAME=PATH` if the text before the first `=` is a plain name and the whole text is not itself a path that exists:
    /// a folder called `year=2024` stays a path.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Spec { text: text.to_owned() });
        }
        let whole = PathBuf::from(text);
        match text.split_once('=') {
            Some((name, path)) if is_name(name) && whole.symlink_metadata().is_err() => {
                if path.is_empty() {
                    return Err(Error::Spec { text: text.to_owned() });
                }
                Ok(Self { name: Some(name.to_owned()), path: PathBuf::from(path) })
            }
            _ => Ok(Self { name: None, path: whole }),
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
