//! Bytes as text and back: hexadecimal digits, base64, escapes, URLs, hashes.

use crate::define::{Function, functions};
use crate::number::in_base;
use crate::values::Kind::{self, Bytes as Binary, Int as Whole, Text as Words};
use crate::values::{Arguments, Blob, Bytes, Int, Int64, Str, Text, map1, map2, map3};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use base64::Engine;
use base64::alphabet::STANDARD as LETTERS;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Reads base64 with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &LETTERS,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn hex_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS.get(usize::from(half)).copied().unwrap_or(b'0')));
        }
    }
    text
}

/// The bytes of hexadecimal digits; a digit that stands alone has a zero before it if that is wanted.
fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn bytes_of_base64(text: &str) -> Result<Vec<u8>> {
    let compact: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    LENIENT.decode(compact).map_err(|error| exec_datafusion_err!("invalid base64: {error}"))
}

/// PostgreSQL's escapes: zero bytes and those above 127 as three octal digits, backslashes twice.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
            byte => text.push(char::from(*byte)),
        }
    }
    text
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut found) = (text.bytes(), Vec::with_capacity(text.len()));
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            found.push(byte);
            continue;
        }
        match bytes.next()? {
            b'\\' => found.push(b'\\'),
            first @ b'0'..=b'3' => {
                let mut value = first - b'0';
                for _ in 0..2 {
                    let digit = bytes.next().filter(|digit| (b'0'..=b'7').contains(digit))?;
                    value = value << 3 | (digit - b'0');
                }
                found.push(value);
            }
            _ => return None,
        }
    }
    Some(found)
}

/// PostgreSQL's `decode(text, format)`.
pub(crate) fn bytes_of_text(text: &str, format: &str) -> Result<Vec<u8>> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => bytes_of_hex(text).ok_or_else(|| exec_datafusion_err!("`{text}` is not hexadecimal")),
        "base64" | "base64pad" => bytes_of_base64(text),
        "escape" => {
            unescaped(text).ok_or_else(|| exec_datafusion_err!("invalid input syntax for type bytea"))
        }
        "utf8" | "utf-8" => Ok(text.as_bytes().to_vec()),
        other => exec_err!("unrecognized encoding `{other}`; use `hex`, `base64` or `escape`"),
    }
}

fn encode(bytes: &[u8], format: &str) -> Result<String> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => Ok(hex_of(bytes)),
        "base64" | "base64pad" => Ok(STANDARD.encode(bytes)),
        "escape" => Ok(escaped(bytes)),
        other => exec_err!("unrecognized encoding `{other}`; use `hex`, `base64` or `escape`"),
    }
}

/// The letters that a URL has as they are.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

fn url_encoded(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) { found.push(char::from(byte)) } else { found.push_str(&format!("%{byte:02X}")) }
    }
    found
}

fn url_decoded(text: &str) -> Result<String> {
    let (mut bytes, mut found) = (text.bytes(), Vec::with_capacity(text.len()));
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            found.push(byte);
            continue;
        }
        let digits: Vec<u8> = bytes.by_ref().take(2).collect();
        let pair = std::str::from_utf8(&digits).ok().and_then(bytes_of_hex);
        match pair.as_deref() {
            Some([byte]) => found.push(*byte),
            _ => return exec_err!("`{text}` has a `%` without two hexadecimal digits behind it"),
        }
    }
    String::from_utf8(found).map_err(|_| exec_datafusion_err!("the decoded text is not UTF-8"))
}

fn hashed<D: Digest>(arguments: &Arguments) -> Result<ArrayRef> {
    map1::<Bytes, Str, _>(arguments, |bytes: &[u8]| hex_of(D::digest(bytes).as_ref()))
}

fn sha2(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Bytes, Int, Str, Result<Option<String>>>(arguments, |bytes, bits| {
        Ok(Some(match bits {
            224 => hex_of(Sha224::digest(bytes).as_ref()),
            0 | 256 => hex_of(Sha256::digest(bytes).as_ref()),
            384 => hex_of(Sha384::digest(bytes).as_ref()),
            512 => hex_of(Sha512::digest(bytes).as_ref()),
            _ => return Ok(None),
        }))
    })
}

/// Numbers in capitals without leading zeros, texts and bytes two digits for each byte.
fn hex(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.data_type(0)? {
        DataType::Int64 => {
            map1::<Int, Str, _>(arguments, |number: i64| in_base(u128::from(number as u64), 16))
        }
        _ => map1::<Bytes, Str, _>(arguments, |bytes: &[u8]| hex_of(bytes).to_uppercase()),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let compact = text.trim();
    if compact.len().is_multiple_of(2) { bytes_of_hex(compact) } else { bytes_of_hex(&format!("0{compact}")) }
}

fn outside(position: i64, bytes: &[u8]) -> DataFusionError {
    exec_datafusion_err!("index {position} out of valid range, there are {} bytes", bytes.len())
}

const BINARY: &[&[Kind]] = &[&[Binary]];
const TEXT: &[&[Kind]] = &[&[Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "encode": &[&[Binary, Words]], Text, |a| map2::<Bytes, Text, Str, Result<String>>(a, encode) =>
        "bytes as text: `hex`, `base64`, `escape`";
    "hex": &[&[Whole], &[Binary]], Text, hex => "the hexadecimal digits of a number, text or bytes";
    "unhex" "from_hex": TEXT, Bytes, |a| map1::<Text, Blob, _>(a, unhex) =>
        "the bytes of hexadecimal digits, null when there are others";
    "to_base64" "base64": BINARY, Text, |a| map1::<Bytes, Str, _>(a, |bytes: &[u8]| STANDARD.encode(bytes)) =>
        "bytes in base64";
    "from_base64" "unbase64": TEXT, Bytes, |a| map1::<Text, Blob, Result<Vec<u8>>>(a, bytes_of_base64) =>
        "the bytes of base64";
    "url_encode": TEXT, Text, |a| map1::<Text, Str, _>(a, url_encoded) =>
        "with `%` for what a URL cannot have";
    "url_decode": TEXT, Text, |a| map1::<Text, Str, Result<String>>(a, url_decoded) =>
        "without the `%` of a URL";
    "sha224": BINARY, Text, hashed::<Sha224> =>
        "the SHA-224 hash in hexadecimal digits, in dialect `postgres` as bytes";
    "sha256": BINARY, Text, hashed::<Sha256> =>
        "the SHA-256 hash in hexadecimal digits, in dialect `postgres` as bytes";
    "sha384": BINARY, Text, hashed::<Sha384> =>
        "the SHA-384 hash in hexadecimal digits, in dialect `postgres` as bytes";
    "sha512": BINARY, Text, hashed::<Sha512> =>
        "the SHA-512 hash in hexadecimal digits, in dialect `postgres` as bytes";
    "sha2": &[&[Binary, Whole]], Text, sha2 =>
        "a SHA-2 hash of 224, 256, 384 or 512 bits in hexadecimal digits";
    "convert_from" "from_utf8": &[&[Binary], &[Binary, Words]], Text, |a| {
        map1::<Bytes, Str, Result<String>>(a, |bytes| {
            String::from_utf8(bytes.to_vec())
                .map_err(|_| exec_datafusion_err!("invalid byte sequence for encoding UTF8"))
        })
    } => "the text of bytes in UTF-8";
    "get_byte": &[&[Binary, Whole]], Int, |a| {
        map2::<Bytes, Int, Int64, Result<i64>>(a, |bytes, position| {
            let byte = usize::try_from(position).ok().and_then(|position| bytes.get(position));
            byte.map(|byte| i64::from(*byte)).ok_or_else(|| outside(position, bytes))
        })
    } => "the byte at a position, counted from 0";
    "set_byte": &[&[Binary, Whole, Whole]], Bytes, |a| {
        map3::<Bytes, Int, Int, Blob, Result<Vec<u8>>>(a, |bytes, position, value| {
            let mut changed = bytes.to_vec();
            let byte = usize::try_from(position).ok().and_then(|position| changed.get_mut(position));
            *byte.ok_or_else(|| outside(position, bytes))? = (value & 255) as u8;
            Ok(changed)
        })
    } => "the bytes with another one at a position";
    "get_bit": &[&[Binary, Whole]], Int, |a| {
        map2::<Bytes, Int, Int64, Result<i64>>(a, |bytes, position| {
            let byte = usize::try_from(position).ok().and_then(|position| bytes.get(position / 8));
            byte.map(|byte| i64::from(byte >> (position & 7) & 1)).ok_or_else(|| outside(position, bytes))
        })
    } => "the bit at a position, counted from 0";
    "convert_to": &[&[Words, Words]], Bytes,
        |a| map1::<Text, Blob, _>(a, |text: &str| text.as_bytes().to_vec()) => "the bytes of a text in UTF-8";
};
