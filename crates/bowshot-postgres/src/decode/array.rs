//! Arrays of one dimension (PostgreSQL manual, "Array Input and Output Syntax"; `array_recv` in `arrayfuncs.c`).

use super::malformed;
use crate::encode::PgType;
use crate::status::Failure;
use bytes::Buf;
use std::borrow::Cow;

/// The bytes of one element.
pub(super) type Item = Cow<'static, [u8]>;

/// The elements of an array in text; `None` if it is malformed, or has more than one dimension.
pub(super) fn text(text: &str) -> Option<Vec<Option<Item>>> {
    // Bounds before the array: `[2:4]={…}`.
    let body = match text.strip_prefix('[') {
        Some(bounds) => bounds.split_once("]=")?.1,
        None => text,
    };
    let body = body.strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if body.trim().is_empty() {
        return Some(items);
    }
    let mut characters = body.chars();
    loop {
        let (item, ended) = element(&mut characters)?;
        items.push(item.map(|item| Cow::Owned(item.into_bytes())));
        if ended {
            return Some(items);
        }
    }
}

/// One element, and whether it was the last one.
fn element(characters: &mut std::str::Chars<'_>) -> Option<(Option<String>, bool)> {
    let mut item = String::new();
    let mut quoted = false;
    // Up to here, blanks are part of the element.
    let mut length = 0;
    let mut ended = true;
    while let Some(character) = characters.next() {
        match character {
            ',' => {
                ended = false;
                break;
            }
            '"' if !quoted && item.is_empty() => {
                quoted = true;
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => item.push(characters.next()?),
                        other => item.push(other),
                    }
                }
                length = item.len();
            }
            '"' | '{' | '}' => return None,
            blank if blank.is_whitespace() && (quoted || item.is_empty()) => {}
            _ if quoted => return None,
            '\\' => {
                item.push(characters.next()?);
                length = item.len();
            }
            other => {
                item.push(other);
                if !other.is_whitespace() {
                    length = item.len();
                }
            }
        }
    }
    item.truncate(length);
    match (quoted, item.is_empty()) {
        (false, true) => None,
        (false, false) if item.eq_ignore_ascii_case("null") => Some((None, ended)),
        _ => Some((Some(item), ended)),
    }
}

/// The elements of an array in binary, which must be of the type that is expected.
pub(super) fn binary(mut bytes: &[u8], expected: u32) -> Result<Vec<Option<Item>>, Failure> {
    let wrong = || malformed("array");
    let dimensions = bytes.try_get_i32().map_err(|_| wrong())?;
    bytes.try_get_i32().map_err(|_| wrong())?;
    let element = bytes.try_get_u32().map_err(|_| wrong())?;
    if PgType::from_oid(element).map(|found| found.kind) != PgType::from_oid(expected).map(|known| known.kind)
    {
        let message = format!("the array has elements of the type with OID {element}, not {expected}");
        return Err(Failure::new("42804", message));
    }
    let count = match dimensions {
        0 => 0,
        1 => {
            let count = bytes.try_get_i32().map_err(|_| wrong())?;
            bytes.try_get_i32().map_err(|_| wrong())?;
            usize::try_from(count).map_err(|_| wrong())?
        }
        _ => return Err(Failure::new("0A000", "arrays of several dimensions cannot be read")),
    };
    // Each element has at least its length.
    if count > bytes.len() / 4 {
        return Err(wrong());
    }
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let length = bytes.try_get_i32().map_err(|_| wrong())?;
        items.push(match usize::try_from(length) {
            Err(_) => None,
            Ok(length) => {
                let (item, rest) = bytes.split_at_checked(length).ok_or_else(wrong)?;
                bytes = rest;
                Some(Cow::Owned(item.to_vec()))
            }
        });
    }
    if bytes.is_empty() { Ok(items) } else { Err(wrong()) }
}
