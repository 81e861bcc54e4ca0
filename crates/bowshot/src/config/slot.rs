//! Where the value of a setting lives, with its type: how it is read, shown and named.

use super::value::{self, Listen};
use super::{DataFolder, LogFormat, dialect};
use bowshot_api::Secret;
use bowshot_databases::is_lake;
use bowshot_files::SourceSpec;
use bowshot_object_store::is_remote;
use bowshot_sql::DialectName;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The place of a value in the configuration, with the type that decides how it is written.
pub(super) enum Slot<'a> {
    Listen(&'a mut Listen),
    Count(&'a mut usize, usize),
    LongCount(&'a mut u64, u64),
    /// A count that the machine decides when it is `auto`.
    Auto(&'a mut Option<usize>),
    Size(&'a mut usize),
    LongSize(&'a mut u64),
    Duration(&'a mut Duration),
    Truth(&'a mut bool),
    /// A part of all, from 0 to 1.
    Share(&'a mut f64),
    Text(&'a mut String),
    Path(&'a mut Option<PathBuf>),
    Data(&'a mut Option<DataFolder>),
    Dialect(&'a mut DialectName),
    LogFormat(&'a mut LogFormat),
    Sources(&'a mut Vec<SourceSpec>),
    /// Shown to nobody, and never on the command line.
    Secret(&'a mut Option<Secret>),
    /// Addresses in object stores.
    Addresses(&'a mut Vec<String>),
    Places(&'a mut Vec<String>),
}

/// A value as it comes in, before its type is known.
#[derive(Debug, Clone)]
pub(super) enum Raw {
    One(String),
    Many(Vec<String>),
}

impl Slot<'_> {
    pub(super) fn set(self, raw: &Raw, base: Option<&Path>) -> Result<(), String> {
        let text = match (&self, raw) {
            (Self::Sources(_), Raw::One(_)) => return Err("expected a list of paths".to_owned()),
            (Self::Sources(_), Raw::Many(_)) => "",
            // From the command line they come as one text.
            (Self::Addresses(_) | Self::Places(_), _) => "",
            (_, Raw::One(text)) => text.as_str(),
            (_, Raw::Many(_)) => return Err("expected one value, not a list".to_owned()),
        };
        match self {
            Self::Listen(place) => *place = Listen::parse(text)?,
            Self::Count(place, least) => *place = value::count(text, least)?,
            Self::LongCount(place, least) => {
                let least = usize::try_from(least).unwrap_or(usize::MAX);
                *place = value::count(text, least)? as u64;
            }
            Self::Auto(place) if text == "auto" => *place = None,
            Self::Auto(place) => *place = Some(value::count(text, 1)?),
            Self::Size(place) => {
                *place = usize::try_from(value::size(text)?)
                    .map_err(|_| "too large for this machine".to_owned())?;
            }
            Self::LongSize(place) => *place = value::size(text)?,
            Self::Duration(place) => *place = value::duration(text)?,
            Self::Truth(place) => *place = value::truth(text)?,
            Self::Share(place) => *place = value::share(text)?,
            Self::Text(place) => text.clone_into(place),
            Self::Path(place) => *place = Some(path(text, base)?),
            Self::Data(place) if text == "memory" => *place = Some(DataFolder::Memory),
            Self::Data(place) => *place = Some(DataFolder::At(path(text, base)?)),
            Self::Dialect(place) => *place = dialect(text)?,
            Self::LogFormat(place) => *place = LogFormat::parse(text)?,
            Self::Sources(place) => *place = sources(raw, base)?,
            Self::Secret(place) => *place = Some(Secret::new(text)),
            Self::Addresses(place) => *place = addresses(raw)?,
            Self::Places(place) => *place = texts(raw),
        }
        Ok(())
    }

    /// The type, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Listen(_) => "`HOST:PORT` or `off`",
            Self::Count(..) | Self::LongCount(..) => "whole number",
            Self::Auto(_) => "whole number or `auto`",
            Self::Size(_) | Self::LongSize(_) => "size",
            Self::Duration(_) => "time",
            Self::Truth(_) => "`true` or `false`",
            Self::Share(_) => "number from 0 to 1",
            Self::Text(_) => "text",
            Self::Path(_) => "path",
            Self::Data(_) => "path or `memory`",
            Self::Dialect(_) => "`ansi`, `postgres` or `mysql`",
            Self::LogFormat(_) => "`text` or `json`",
            Self::Sources(_) => "list of paths",
            Self::Secret(_) => "text",
            Self::Addresses(_) | Self::Places(_) => "list of addresses",
        }
    }

    pub(super) fn show(self) -> String {
        match self {
            Self::Listen(place) => place.to_string(),
            Self::Count(place, _) => place.to_string(),
            Self::LongCount(place, _) => place.to_string(),
            Self::Auto(place) => place.map_or_else(|| "auto".to_owned(), |value| value.to_string()),
            Self::Size(place) => value::show_size(*place as u64),
            Self::LongSize(place) => value::show_size(*place),
            Self::Duration(place) => value::show_duration(*place),
            Self::Truth(place) => place.to_string(),
            Self::Share(place) => place.to_string(),
            Self::Text(place) => place.clone(),
            Self::Path(place) => place.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            Self::Data(place) => match place {
                None => String::new(),
                Some(DataFolder::Memory) => "memory".to_owned(),
                Some(DataFolder::At(path)) => path.display().to_string(),
            },
            Self::Dialect(place) => place.as_str().to_owned(),
            Self::LogFormat(place) => place.name().to_owned(),
            Self::Addresses(place) | Self::Places(place) => place.join(", "),
            Self::Sources(place) => place.iter().map(show_source).collect::<Vec<_>>().join(", "),
            Self::Secret(_) => String::new(),
        }
    }
}

fn path(text: &str, base: Option<&Path>) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("expected a path".to_owned());
    }
    Ok(based(PathBuf::from(text), base))
}

fn based(path: PathBuf, base: Option<&Path>) -> PathBuf {
    // What stands behind the scheme is the path.
    let of_lake = path.to_str().filter(|path| is_lake(path)).and_then(|path| path.split_once(':'));
    if let (Some((scheme, rest)), Some(base)) = (of_lake, base) {
        let rest = rest.strip_prefix("sqlite:").unwrap_or(rest);
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        return PathBuf::from(format!("{scheme}:{}", base.join(rest).display()));
    }
    match base {
        Some(base) if !is_remote(&path) => base.join(path),
        _ => path,
    }
}

fn sources(raw: &Raw, base: Option<&Path>) -> Result<Vec<SourceSpec>, String> {
    let Raw::Many(texts) = raw else { return Err("expected a list of paths".to_owned()) };
    let parse = |text: &String| {
        let spec: SourceSpec =
            text.parse().map_err(|error: bowshot_object_store::Error| error.to_string())?;
        Ok(SourceSpec { path: based(spec.path.clone(), base), ..spec })
    };
    texts.iter().map(parse).collect()
}

fn texts(raw: &Raw) -> Vec<String> {
    match raw {
        Raw::One(text) => text.split(',').map(|text| text.trim().to_owned()).collect(),
        Raw::Many(texts) => texts.clone(),
    }
}

fn addresses(raw: &Raw) -> Result<Vec<String>, String> {
    let texts = texts(raw);
    match texts.iter().find(|text| !is_remote(Path::new(text))) {
        Some(text) => Err(format!("expected addresses such as `s3://bucket/prefix`, not `{text}`")),
        None => Ok(texts),
    }
}

fn show_source(source: &SourceSpec) -> String {
    match &source.name {
        Some(name) => format!("{name}={}", source.path.display()),
        None => source.path.display().to_string(),
    }
}
