//! Paths into a document: JSONPath (`$.a[0]`), JSON pointers (`/a/0`), PostgreSQL's `{a,0}`, and single keys.

use super::reader::Step;
use super::value::Json;
use datafusion::common::{Result, exec_err};

/// The steps of a path as DuckDB reads it: JSONPath, a pointer, or else the name of a member.
pub(crate) fn path(text: &str) -> Result<Vec<Step>> {
    match text.as_bytes().first() {
        Some(b'$') => json_path(text),
        Some(b'/') => Ok(pointer(text)),
        _ => Ok(vec![Step::Key(text.to_owned())]),
    }
}

/// Whether a path can lead to several parts.
pub(crate) fn is_many(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::All | Step::Below))
}

fn pointer(text: &str) -> Vec<Step> {
    let step = |part: &str| match part.parse::<u32>() {
        Ok(index) => Step::Index(index.into()),
        Err(_) => Step::Key(part.replace("~1", "/").replace("~0", "~")),
    };
    text.split('/').skip(1).map(step).collect()
}

/// JSONPath without filters. PostgreSQL's `lax` and `strict` in front are taken, the former being the meaning here.
pub(crate) fn json_path(text: &str) -> Result<Vec<Step>> {
    let trimmed = text.trim();
    let trimmed = trimmed.strip_prefix("lax ").or_else(|| trimmed.strip_prefix("strict ")).unwrap_or(trimmed);
    let Some(mut rest) = trimmed.trim_start().strip_prefix('$') else { return bad(text) };
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, behind) = if let Some(behind) = rest.strip_prefix("..") {
            // The dot stays for the step that follows, but where that is in brackets.
            steps.push(Step::Below);
            if behind.starts_with('[') {
                rest = behind;
                continue;
            }
            after_dot(behind).map_or_else(|| bad(text), Ok)?
        } else if let Some(behind) = rest.strip_prefix('.') {
            after_dot(behind).map_or_else(|| bad(text), Ok)?
        } else if let Some(behind) = rest.strip_prefix('[') {
            in_brackets(behind).map_or_else(|| bad(text), Ok)?
        } else {
            return bad(text);
        };
        steps.push(step);
        rest = behind.trim_start();
    }
    Ok(steps)
}

fn bad<T>(path: &str) -> Result<T> {
    exec_err!("`{path}` is not a path into JSON: write `$.member`, `$.list[0]` or `$.*`, without conditions")
}

fn after_dot(rest: &str) -> Option<(Step, &str)> {
    if let Some(behind) = rest.strip_prefix('*') {
        return Some((Step::All, behind));
    }
    if rest.starts_with('"') {
        return quoted(rest).map(|(key, behind)| (Step::Key(key), behind));
    }
    let end = rest.find(['.', '[', ' ', '(', '?', '@']).unwrap_or(rest.len());
    let (key, behind) = rest.split_at_checked(end)?;
    (!key.is_empty()).then(|| (Step::Key(key.to_owned()), behind))
}

fn in_brackets(rest: &str) -> Option<(Step, &str)> {
    let rest = rest.trim_start();
    if rest.starts_with(['"', '\'']) {
        let (key, behind) = quoted(rest)?;
        return behind.trim_start().strip_prefix(']').map(|behind| (Step::Key(key), behind));
    }
    let (inside, behind) = rest.split_once(']')?;
    let inside = inside.trim();
    let index = match (inside, inside.strip_prefix('#'), inside.strip_prefix("last")) {
        ("*", _, _) => return Some((Step::All, behind)),
        (_, Some(from_end), _) => from_end.trim().replace(' ', "").parse().ok().filter(|index| *index < 0)?,
        (_, _, Some("")) => -1,
        (_, _, Some(from_end)) => from_end.trim().replace(' ', "").parse::<i64>().ok()? - 1,
        _ => inside.parse().ok()?,
    };
    Some((Step::Index(index), behind))
}

fn quoted(rest: &str) -> Option<(String, &str)> {
    let mut characters = rest.char_indices();
    let (_, mark) = characters.next()?;
    let mut key = String::new();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => key.push(characters.next()?.1),
            _ if character == mark => return Some((key, rest.get(at + 1..)?)),
            other => key.push(other),
        }
    }
    None
}

/// PostgreSQL's text of an array, `{a,0,"b c"}`, as it stands behind `#>`. An element that is a number is an index or a key:
/// what it finds decides, so that both are tried by [`follow_names`].
pub(crate) fn names(text: &str) -> Result<Vec<String>> {
    let Some(inside) = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
        return exec_err!("malformed array literal: `{text}`; write the path as `{{a,0}}`");
    };
    let mut names = Vec::new();
    let mut rest = inside.trim_start();
    while !rest.is_empty() {
        let (name, behind) = if rest.starts_with('"') {
            quoted(rest).map_or_else(|| exec_err!("malformed array literal: `{text}`"), Ok)?
        } else {
            let (name, behind) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            (name.trim_end().to_owned(), behind)
        };
        names.push(name);
        let behind = behind.trim_start();
        rest = behind.strip_prefix(',').unwrap_or(behind).trim_start();
    }
    Ok(names)
}

/// The part that names lead to, each the key of a member or the index of an element.
pub(crate) fn follow_names<'a, 'b>(document: &'b Json<'a>, names: &[String]) -> Option<&'b Json<'a>> {
    names.iter().try_fold(document, |part, name| match part {
        Json::Array(_) => part.element(name.parse().ok()?),
        _ => part.member(name),
    })
}

/// Every part that a path leads to, in the order of the text.
pub(crate) fn follow<'a, 'b>(document: &'b Json<'a>, steps: &[Step]) -> Vec<&'b Json<'a>> {
    steps.iter().fold(vec![document], |parts, step| match step {
        Step::Key(key) => parts.into_iter().filter_map(|part| part.member(key)).collect(),
        Step::Index(index) => parts.into_iter().filter_map(|part| part.element(*index)).collect(),
        Step::All => parts.into_iter().flat_map(Json::children).collect(),
        Step::Below => {
            let mut all = Vec::new();
            parts.into_iter().for_each(|part| below(part, &mut all));
            all
        }
    })
}

fn below<'a, 'b>(part: &'b Json<'a>, all: &mut Vec<&'b Json<'a>>) {
    all.push(part);
    part.children().into_iter().for_each(|child| below(child, all));
}
