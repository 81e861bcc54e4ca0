//! Similarity of texts.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Text as Words};
use crate::values::{Int64, Real, Str, Text, map1, map2};
use datafusion::common::{Result, exec_err};
use std::collections::HashSet;

/// The most characters of a text whose distance is computed: it takes the product of both lengths.
const MOST_CHARACTERS: usize = 10_000;

fn check(one: &str, other: &str) -> Result<()> {
    if one.len().max(other.len()) > MOST_CHARACTERS {
        return exec_err!("texts of more than {MOST_CHARACTERS} bytes cannot be compared");
    }
    Ok(())
}

fn distance(one: &str, other: &str, measure: fn(&str, &str) -> usize) -> Result<i64> {
    check(one, other)?;
    Ok(i64::try_from(measure(one, other)).unwrap_or(i64::MAX))
}

fn similarity(one: &str, other: &str, measure: fn(&str, &str) -> f64) -> Result<f64> {
    check(one, other)?;
    Ok(measure(one, other))
}

fn hamming(one: &str, other: &str) -> Result<i64> {
    match strsim::hamming(one, other) {
        Ok(count) => Ok(i64::try_from(count).unwrap_or(i64::MAX)),
        Err(_) => exec_err!("`hamming` compares texts of the same length"),
    }
}

/// Characters that both have, of those that one of them has.
fn jaccard(one: &str, other: &str) -> Result<f64> {
    if one.is_empty() || other.is_empty() {
        return exec_err!("`jaccard` compares texts that are not empty");
    }
    let (one, other): (HashSet<char>, HashSet<char>) = (one.chars().collect(), other.chars().collect());
    Ok(one.intersection(&other).count() as f64 / one.union(&other).count() as f64)
}

/// PostgreSQL's soundex: a letter and three digits; nothing for a text without letters.
fn soundex(text: &str) -> String {
    let code = |letter: char| match letter {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        // These two do not separate letters of the same code.
        'H' | 'W' => '-',
        _ => '0',
    };
    let mut letters =
        text.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_uppercase());
    let Some(first) = letters.next() else { return String::new() };
    let (mut found, mut last) = (String::from(first), code(first));
    for letter in letters {
        let digit = code(letter);
        if digit == '-' {
            continue;
        }
        if digit != '0' && digit != last {
            found.push(digit);
            if found.len() == 4 {
                break;
            }
        }
        last = digit;
    }
    while found.len() < 4 {
        found.push('0');
    }
    found
}

/// In how many places the soundex codes agree.
fn difference(one: &str, other: &str) -> i64 {
    let (one, other) = (soundex(one), soundex(other));
    one.chars().zip(other.chars()).map(|(one, other)| i64::from(one == other)).sum()
}

/// Trigrams of words, as pg_trgm makes them.
fn trigrams(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let padded: Vec<char> = "  ".chars().chain(word.chars()).chain(" ".chars()).collect();
        found.extend(padded.windows(3).map(|three| three.iter().collect::<String>()));
    }
    found
}

fn trigram_similarity(one: &str, other: &str) -> f64 {
    let (one, other) = (trigrams(one), trigrams(other));
    let all = one.union(&other).count();
    if all == 0 { 0.0 } else { one.intersection(&other).count() as f64 / all as f64 }
}

const TWO: &[&[Kind]] = &[&[Words, Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "damerau_levenshtein": TWO, Int, |a| {
        map2::<Text, Text, Int64, Result<i64>>(a, |one, other| {
            distance(one, other, strsim::damerau_levenshtein)
        })
    } => "characters to change, with neighbours that change places";
    "hamming" "mismatches": TWO, Int, |a| map2::<Text, Text, Int64, Result<i64>>(a, hamming) =>
        "in how many places texts of one length differ";
    "jaccard": TWO, Float, |a| map2::<Text, Text, Real, Result<f64>>(a, jaccard) =>
        "the share of characters that both have";
    "jaro_similarity": TWO, Float,
        |a| map2::<Text, Text, Real, Result<f64>>(a, |one, other| similarity(one, other, strsim::jaro)) =>
        "Jaro's similarity, from 0 to 1";
    "jaro_winkler_similarity" "jaro_winkler": TWO, Float, |a| {
        map2::<Text, Text, Real, Result<f64>>(a, |one, other| {
            similarity(one, other, strsim::jaro_winkler)
        })
    } => "the similarity of Jaro and Winkler, from 0 to 1";
    "similarity": TWO, Float, |a| map2::<Text, Text, Real, _>(a, trigram_similarity) =>
        "the share of trigrams that both have";
    "soundex": &[&[Words]], Text, |a| map1::<Text, Str, _>(a, soundex) =>
        "a code of how a word sounds in English";
    "difference": TWO, Int, |a| map2::<Text, Text, Int64, _>(a, difference) =>
        "in how many places the soundex codes agree";
};
