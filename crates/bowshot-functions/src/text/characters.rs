//! Single characters: codes, accents, masks.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Int as Whole, Many, Text as Words};
use crate::values::{Arguments, Int, Int64, Str, Text, fill, get_or, map1};
use arrow::array::ArrayRef;
use datafusion::common::{Result, exec_err};
use unicode_normalization::UnicodeNormalization;

fn without_accents(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.nfd().filter(|character| !('\u{300}'..='\u{36f}').contains(character)).nfc().collect()
}

fn unaccented(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for character in without_accents(text).chars() {
        match spelling(character) {
            Some(spelled) => found.push_str(spelled),
            None => found.push(character),
        }
    }
    found
}

/// Letters without accents that PostgreSQL's `unaccent` spells with plain ones, too.
fn spelling(letter: char) -> Option<&'static str> {
    Some(match letter {
        'Æ' => "AE",
        'æ' => "ae",
        'Ø' => "O",
        'ø' => "o",
        'ß' => "ss",
        'ẞ' => "SS",
        'Œ' => "OE",
        'œ' => "oe",
        'Ł' => "L",
        'ł' => "l",
        'Đ' | 'Ð' => "D",
        'đ' | 'ð' => "d",
        'Þ' => "TH",
        'þ' => "th",
        'ı' => "i",
        'Ħ' => "H",
        'ħ' => "h",
        'Ŧ' => "T",
        'ŧ' => "t",
        _ => return None,
    })
}

fn character_of(code: i64) -> Result<char> {
    match u32::try_from(code).ok().and_then(char::from_u32) {
        Some('\0') => exec_err!("null character not permitted"),
        Some(character) => Ok(character),
        None => exec_err!("requested character not valid for encoding UTF8: {code}"),
    }
}

/// MySQL's `char(77, 121)`; nulls are passed over.
fn characters(arguments: &Arguments) -> Result<ArrayRef> {
    let codes =
        (0..arguments.len()).map(|position| arguments.read::<Int>(position)).collect::<Result<Vec<_>>>()?;
    let single = codes.len() == 1;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let mut text = String::new();
        for code in &codes {
            match code.get(row)? {
                Some(code) => text.push(character_of(code)?),
                None if single => return Ok(None),
                None => {}
            }
        }
        Ok(Some(text))
    })
}

fn code_of(text: &str) -> i64 {
    text.chars().next().map_or(0, |character| i64::from(u32::from(character)))
}

/// Spark's `mask`: X for capitals, x for small letters, n for digits; null leaves a kind as it is.
fn mask(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.read::<Text>(0)?;
    let given =
        (1..4).map(|position| arguments.read_if_given::<Text>(position)).collect::<Result<Vec<_>>>()?;
    let other = arguments.read_if_given::<Text>(4)?;
    fill::<Str, Result<Option<String>>>(arguments, |row| {
        let Some(text) = texts.get(row)? else { return Ok(None) };
        let mut masks = Vec::with_capacity(4);
        for (reader, usual) in given.iter().zip(["X", "x", "n"]) {
            masks.push(get_or(reader.as_ref(), row, usual)?);
        }
        masks.push(other.as_ref().map_or(Ok(None), |other| other.get(row))?);
        let kind = |c: char| match c {
            c if c.is_uppercase() => 0,
            c if c.is_lowercase() => 1,
            c if c.is_numeric() => 2,
            _ => 3,
        };
        let masked =
            |c: char| masks.get(kind(c)).copied().flatten().and_then(|mask| mask.chars().next()).unwrap_or(c);
        Ok(Some(text.chars().map(masked).collect()))
    })
}

const TEXT: &[&[Kind]] = &[&[Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "chr" "char": &[&[Whole, Many(&Whole)]], Text, characters => "the character of a code";
    "unicode" "ord": TEXT, Int, |a| map1::<Text, Int64, _>(a, code_of) =>
        "the Unicode code of the first character";
    "strip_accents": TEXT, Text, |a| map1::<Text, Str, _>(a, without_accents) =>
        "letters without their accents";
    "unaccent": TEXT, Text, |a| map1::<Text, Str, _>(a, unaccented) =>
        "letters without accents, `ø` as `o`, `ß` as `ss`";
    "nfc_normalize": TEXT, Text, |a| map1::<Text, Str, _>(a, |text: &str| text.nfc().collect::<String>()) =>
        "text in Unicode normal form C";
    "mask": &[
        &[Words],
        &[Words, Words],
        &[Words, Words, Words],
        &[Words, Words, Words, Words],
        &[Words, Words, Words, Words, Words],
    ], Text,
        mask => "capitals as `X`, small letters as `x`, digits as `n`, or as the characters that are given";
};
