//! Binary strings `_binary'…'`, in which drivers send raw bytes (MySQL manual, "Character Set Introducers"). They become
//! `X'…'`, so that the statement is valid UTF-8.

use std::borrow::Cow;
use std::fmt::Write as _;

const INTRODUCER: &[u8] = b"_binary";

/// The statement with hexadecimal literals.
pub(crate) fn without_raw_bytes(sql: &[u8]) -> Cow<'_, [u8]> {
    let has_any = sql.windows(INTRODUCER.len()).any(|part| part.eq_ignore_ascii_case(INTRODUCER));
    if !has_any {
        return Cow::Borrowed(sql);
    }
    let mut out = Vec::with_capacity(sql.len());
    let mut at = 0;
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        let after_word = out.last().is_some_and(|byte: &u8| is_of_word(*byte));
        if !after_word && let Some((bytes, length)) = introduced(rest) {
            out.extend_from_slice(hex(&bytes).as_bytes());
            at += length;
            continue;
        }
        let length = whole(rest);
        out.extend_from_slice(rest.get(..length).unwrap_or(rest));
        at += length;
    }
    Cow::Owned(out)
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len() + 3);
    text.push_str("X'");
    for byte in bytes {
        let _ = write!(text, "{byte:02X}");
    }
    text.push('\'');
    text
}

/// The bytes and the length of a `_binary'…'` at the start of a text.
fn introduced(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let head = text.get(..INTRODUCER.len())?;
    if !head.eq_ignore_ascii_case(INTRODUCER) {
        return None;
    }
    let rest = text.get(INTRODUCER.len()..)?;
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let rest = rest.get(blanks..)?;
    let quote = *rest.first().filter(|quote| matches!(quote, b'\'' | b'"'))?;
    let length = quoted(rest, quote)?;
    let inner = rest.get(1..length.checked_sub(1)?)?;
    Some((unescaped(inner, quote), INTRODUCER.len() + blanks + length))
}

/// The length of the string, name, comment or single byte at the start of a text.
fn whole(text: &[u8]) -> usize {
    let until = |end: &[u8]| {
        text.windows(end.len()).position(|part| part == end).map_or(text.len(), |at| at + end.len())
    };
    match text {
        [quote @ (b'\'' | b'"' | b'`'), ..] => quoted(text, *quote).unwrap_or(text.len()),
        [b'#', ..] => until(b"\n"),
        [b'-', b'-', blank, ..] if blank.is_ascii_whitespace() => until(b"\n"),
        [b'/', b'*', b'!' | b'+', ..] => 3,
        [b'/', b'*', ..] => until(b"*/"),
        _ => 1,
    }
}

/// The length of quoted text at the start; `None` if it is not terminated.
fn quoted(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match (*byte, text.get(at + 1)) {
            (b'\\', Some(_)) if quote != b'`' => at += 2,
            (byte, Some(next)) if byte == quote && *next == quote => at += 2,
            (byte, _) if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

fn unescaped(text: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        out.extend(match byte {
            b'\\' => bytes.next().map(unescape_byte),
            doubled if doubled == quote => bytes.next(),
            other => Some(other),
        });
    }
    out
}

/// The byte that a backslash and this byte stand for (MySQL manual, "String Literals").
pub(crate) fn unescape_byte(escaped: u8) -> u8 {
    match escaped {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 0x1a,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_digits_and_the_rest_stays() {
        for (sql, expected) in [
            (b"SELECT 1".as_ref(), b"SELECT 1".as_ref()),
            (b"SELECT _binary'\0\xff\\''''", b"SELECT X'00FF2727'"),
            (b"SELECT _BINARY \"a\\0\"\"\", 'x'", b"SELECT X'610022', 'x'"),
            (
                b"SELECT '_binary''x', `_binary'`, a_binary'x'",
                b"SELECT '_binary''x', `_binary'`, a_binary'x'",
            ),
            (b"/* _binary'x' */ -- _binary'y'\nSELECT 1", b"/* _binary'x' */ -- _binary'y'\nSELECT 1"),
            (b"SELECT '\\'_binary', _binary'a'", b"SELECT '\\'_binary', X'61'"),
            (b"SELECT _binary'a", b"SELECT _binary'a"),
            (b"SELECT _binary", b"SELECT _binary"),
            (b"SELECT _binary'", b"SELECT _binary'"),
        ] {
            let found = without_raw_bytes(sql);
            assert_eq!(found.as_ref(), expected, "{}", String::from_utf8_lossy(sql));
        }
    }
}
