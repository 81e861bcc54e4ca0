//! What the operator wrote on the command line: `PATH` or `NAME=PATH`.

use bowshot_formats::read_options::ReadOptions;
use bowshot_object_store::Error;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// One source of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// The table's name, if the operator chose it.
    pub name: Option<String>,
    /// A file or a folder.
    pub path: PathBuf,
    /// How its files are read.
    pub options: ReadOptions,
}

impl SourceSpec {
    /// A source whose files are read as they say themselves.
    pub fn new(name: Option<String>, path: PathBuf) -> Self {
        Self { name, path, options: ReadOptions::default() }
    }
}

impl FromStr for SourceSpec {
    type Err = Error;

    /// `NAME=PATH` if the text before the first `=` is a plain name and the whole text is not itself a path that exists:
    /// a folder called `year=2024` stays a path. Options follow behind `?`, unless a file has such a name.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Spec { text: text.to_owned() });
        }
        let (text, options) = split_options(text)?;
        let whole = PathBuf::from(text);
        let (name, path) = match text.split_once('=') {
            Some((name, path)) if is_name(name) && whole.symlink_metadata().is_err() => {
                if path.is_empty() {
                    return Err(Error::Spec { text: text.to_owned() });
                }
                (Some(name.to_owned()), PathBuf::from(path))
            }
            _ => (None, whole),
        };
        Ok(Self { name, path, options })
    }
}

/// `PATH?header=false&delim=;` as path and options.
fn split_options(text: &str) -> Result<(&str, ReadOptions), Error> {
    let there = |path: &str| PathBuf::from(path).symlink_metadata().is_ok();
    match text.split_once('?') {
        Some((path, options))
            if !there(text) && !text.split_once('=').is_some_and(|(_, path)| there(path)) =>
        {
            let refused = |error: bowshot_api::Error| Error::Option {
                text: options.to_owned(),
                error: Arc::new(error),
            };
            Ok((path, ReadOptions::parse(options).map_err(refused)?))
        }
        _ => Ok((text, ReadOptions::default())),
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
