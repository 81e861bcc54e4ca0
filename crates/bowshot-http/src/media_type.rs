//! Formats of results, chosen by `format` in the query, else by the header `accept` (RFC 9110, section 12.5.1).

use crate::status::{Failure, Result};
use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, StatusCode};
use bowshot_api::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Lines,
    Csv,
    ArrowStream,
    ArrowFile,
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Zstd,
    Gzip,
}

impl Coding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The preferred coding that a client accepts.
    fn negotiate(headers: &HeaderMap) -> Option<Self> {
        let takes = |name: &str| {
            let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
            accepted.flat_map(|value| value.split(',')).any(|coding| {
                let mut parts = coding.split(';').map(str::trim);
                let is_meant = parts.next().is_some_and(|part| part.eq_ignore_ascii_case(name));
                is_meant && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
            })
        };
        [Self::Zstd, Self::Gzip].into_iter().find(|coding| takes(coding.name()))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseFormat {
    pub(crate) format: Format,
    /// Only for text formats; the others have their own compression.
    pub(crate) coding: Option<Coding>,
}

impl ResponseFormat {
    pub(crate) fn read(headers: &HeaderMap, format: Option<&str>) -> Result<Self> {
        let format = Format::wanted(headers, format)?;
        let is_text = matches!(format, Format::Json | Format::Lines | Format::Csv);
        Ok(Self { format, coding: Coding::negotiate(headers).filter(|_| is_text) })
    }
}

/// Query name, media type, format; the first one is the default.
const FORMATS: &[(&str, &str, Format)] = &[
    ("json", "application/json", Format::Json),
    ("ndjson", "application/x-ndjson", Format::Lines),
    ("csv", "text/csv", Format::Csv),
    ("arrow", "application/vnd.apache.arrow.stream", Format::ArrowStream),
    ("arrow-file", "application/vnd.apache.arrow.file", Format::ArrowFile),
    ("parquet", "application/vnd.apache.parquet", Format::Parquet),
];

const ALIASES: &[(&str, Format)] = &[
    ("application/ndjson", Format::Lines),
    ("application/jsonl", Format::Lines),
    ("application/x-jsonlines", Format::Lines),
];

impl Format {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            format => FORMATS.iter().find(|(.., other)| *other == format).map_or("", |(_, media, _)| media),
        }
    }

    /// The format of a `content-type`.
    pub(crate) fn from_media_type(text: &str) -> Option<Self> {
        let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let known = FORMATS.iter().map(|(_, media, format)| (*media, *format)).chain(ALIASES.iter().copied());
        known.into_iter().find(|(name, _)| *name == media).map(|(_, format)| format)
    }

    /// The requested format.
    ///
    /// # Errors
    /// 400 for an unknown name in the query; 406 if the client takes no form that there is.
    fn wanted(headers: &HeaderMap, format: Option<&str>) -> Result<Self> {
        if let Some(name) = format {
            let named = FORMATS.iter().find(|(known, ..)| *known == name).map(|(.., format)| *format);
            return named.ok_or_else(|| {
                let names: Vec<&str> = FORMATS.iter().map(|(name, ..)| *name).collect();
                Error::invalid(format!("unknown format `{name}`"))
                    .with_hint(format!("the formats are {}", names.join(", ")))
                    .into()
            });
        }
        let accepted: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok()).collect();
        if accepted.is_empty() {
            return Ok(Self::Json);
        }
        best(&accepted.join(",")).ok_or_else(|| {
            let media: Vec<&str> = FORMATS.iter().map(|(_, media, _)| *media).collect();
            let error = Error::unsupported("cannot produce any format of the header `accept`")
                .with_hint(format!("the formats are {}", media.join(", ")));
            Failure::with_status(error, StatusCode::NOT_ACCEPTABLE)
        })
    }
}

/// The format with the greatest weight, the first of several.
fn best(accept: &str) -> Option<Format> {
    let mut best: Option<(Format, f32)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
        let format = match media.as_str() {
            "*/*" | "application/*" => Some(Format::Json),
            "text/*" => Some(Format::Csv),
            media => Format::from_media_type(media),
        };
        if let (Some(format), Some(weight)) = (format, weight)
            && weight > best.map_or(0.0, |(_, weight)| weight)
        {
            best = Some((format, weight));
        }
    }
    best.map(|(format, _)| format)
}

#[cfg(test)]
mod tests {
    use super::{Format, best};

    #[test]
    fn the_greatest_weight_wins() {
        for (accept, expected) in [
            ("*/*", Some(Format::Json)),
            ("text/csv", Some(Format::Csv)),
            ("Text/CSV; header=present", Some(Format::Csv)),
            ("application/json;q=0.5, text/csv", Some(Format::Csv)),
            ("application/json;q=0, text/csv;q=0.1", Some(Format::Csv)),
            ("application/vnd.apache.arrow.stream, */*;q=0.1", Some(Format::ArrowStream)),
            ("image/png, text/*", Some(Format::Csv)),
            ("image/png", None),
            ("application/json;q=x", None),
            ("application/json;q=0", None),
            ("", None),
        ] {
            assert_eq!(best(accept), expected, "{accept}");
        }
    }
}
