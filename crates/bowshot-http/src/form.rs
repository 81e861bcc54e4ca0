//! The forms that a result can have, and which one a client wants: by `format` in the query, else by the header `accept`
//! (RFC 9110, section 12.5.1).

use crate::status::{Failure, Result};
use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, StatusCode};
use bowshot_api::Error;

/// A form of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Lines,
    Csv,
    ArrowStream,
    ArrowFile,
    Parquet,
}

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Zstd,
    Gzip,
}

impl Coding {
    /// The name in `content-encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The best one that a client takes.
    fn of(headers: &HeaderMap) -> Option<Self> {
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

/// How a client wants its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) form: Form,
    /// How the form goes out; those that have compression of their own go as they are.
    pub(crate) coding: Option<Coding>,
}

impl Wish {
    /// What a client wants.
    ///
    /// # Errors
    /// As [`Form::wanted`].
    pub(crate) fn read(headers: &HeaderMap, format: Option<&str>) -> Result<Self> {
        let form = Form::wanted(headers, format)?;
        let is_text = matches!(form, Form::Json | Form::Lines | Form::Csv);
        Ok(Self { form, coding: Coding::of(headers).filter(|_| is_text) })
    }
}

/// Name in the query, media type, form; the first one is what is sent if a client takes anything.
const FORMS: &[(&str, &str, Form)] = &[
    ("json", "application/json", Form::Json),
    ("ndjson", "application/x-ndjson", Form::Lines),
    ("csv", "text/csv", Form::Csv),
    ("arrow", "application/vnd.apache.arrow.stream", Form::ArrowStream),
    ("arrow-file", "application/vnd.apache.arrow.file", Form::ArrowFile),
    ("parquet", "application/vnd.apache.parquet", Form::Parquet),
];

/// Other names of media types.
const ALIASES: &[(&str, Form)] = &[
    ("application/ndjson", Form::Lines),
    ("application/jsonl", Form::Lines),
    ("application/x-jsonlines", Form::Lines),
];

impl Form {
    /// The `content-type` of an answer.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            form => FORMS.iter().find(|(.., other)| *other == form).map_or("", |(_, media, _)| media),
        }
    }

    /// The form of rows that come with a `content-type`.
    pub(crate) fn of_media_type(text: &str) -> Option<Self> {
        let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let known = FORMS.iter().map(|(_, media, form)| (*media, *form)).chain(ALIASES.iter().copied());
        known.into_iter().find(|(name, _)| *name == media).map(|(_, form)| form)
    }

    /// The form that a client wants.
    ///
    /// # Errors
    /// 400 for an unknown name in the query; 406 if the client takes no form that there is.
    fn wanted(headers: &HeaderMap, format: Option<&str>) -> Result<Self> {
        if let Some(name) = format {
            let named = FORMS.iter().find(|(known, ..)| *known == name).map(|(.., form)| *form);
            return named.ok_or_else(|| {
                let names: Vec<&str> = FORMS.iter().map(|(name, ..)| *name).collect();
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
            let media: Vec<&str> = FORMS.iter().map(|(_, media, _)| *media).collect();
            let error = Error::unsupported("a result has none of the forms that `accept` names")
                .with_hint(format!("the forms are {}", media.join(", ")));
            Failure::with_status(error, StatusCode::NOT_ACCEPTABLE)
        })
    }
}

/// The form with the greatest weight; of several, the one that is named first.
fn best(accept: &str) -> Option<Form> {
    let mut best: Option<(Form, f32)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
        let form = match media.as_str() {
            "*/*" | "application/*" => Some(Form::Json),
            "text/*" => Some(Form::Csv),
            media => Form::of_media_type(media),
        };
        if let (Some(form), Some(weight)) = (form, weight)
            && weight > best.map_or(0.0, |(_, weight)| weight)
        {
            best = Some((form, weight));
        }
    }
    best.map(|(form, _)| form)
}

#[cfg(test)]
mod tests {
    use super::{Form, best};

    #[test]
    fn the_greatest_weight_wins() {
        for (accept, expected) in [
            ("*/*", Some(Form::Json)),
            ("text/csv", Some(Form::Csv)),
            ("Text/CSV; header=present", Some(Form::Csv)),
            ("application/json;q=0.5, text/csv", Some(Form::Csv)),
            ("application/json;q=0, text/csv;q=0.1", Some(Form::Csv)),
            ("application/vnd.apache.arrow.stream, */*;q=0.1", Some(Form::ArrowStream)),
            ("image/png, text/*", Some(Form::Csv)),
            ("image/png", None),
            ("application/json;q=x", None),
            ("application/json;q=0", None),
            ("", None),
        ] {
            assert_eq!(best(accept), expected, "{accept}");
        }
    }
}
