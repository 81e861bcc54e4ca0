//! Forms of MySQL that the parser does not know, in tokens that it does: `INTERVAL '1:30' MINUTE_SECOND`, `INSERT … VALUE (…)`,
//! `LOCK IN SHARE MODE`, `NATIONAL VARCHAR(9)`.

use crate::tokens::{is_blank, keyword, word};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Composite units, the unit of their last part, and how many of it each part is, the last part last.
const UNITS: [(&str, &str, &[i64]); 11] = [
    ("YEAR_MONTH", "MONTH", &[12, 1]),
    ("DAY_HOUR", "HOUR", &[24, 1]),
    ("DAY_MINUTE", "MINUTE", &[1_440, 60, 1]),
    ("DAY_SECOND", "SECOND", &[86_400, 3_600, 60, 1]),
    ("DAY_MICROSECOND", "MICROSECOND", &[86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1]),
    ("HOUR_MINUTE", "MINUTE", &[60, 1]),
    ("HOUR_SECOND", "SECOND", &[3_600, 60, 1]),
    ("HOUR_MICROSECOND", "MICROSECOND", &[3_600_000_000, 60_000_000, 1_000_000, 1]),
    ("MINUTE_SECOND", "SECOND", &[60, 1]),
    ("MINUTE_MICROSECOND", "MICROSECOND", &[60_000_000, 1_000_000, 1]),
    ("SECOND_MICROSECOND", "MICROSECOND", &[1_000_000, 1]),
];

/// The tokens with such forms put into others.
pub(crate) fn known(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let places: Vec<usize> =
        (0..tokens.len()).filter(|at| tokens.get(*at).is_some_and(|token| !is_blank(&token.token))).collect();
    let mut inserts = false;
    for (index, at) in places.iter().enumerate() {
        let next = |further: usize| places.get(index + further).copied();
        let Some(token) = tokens.get(*at).map(|token| token.token.clone()) else { continue };
        match keyword(&token) {
            Keyword::INSERT | Keyword::REPLACE => inserts = true,
            Keyword::VALUE if inserts && is_open(&tokens, next(1)) => {
                put(&mut tokens, *at, word("VALUES", Keyword::VALUES));
            }
            Keyword::INTERVAL => interval(&mut tokens, next(1), next(2))?,
            Keyword::LOCK => share(&mut tokens, [Some(*at), next(1), next(2), next(3)]),
            _ if token == Token::SemiColon => inserts = false,
            _ => national_text(&mut tokens, *at, next(1)),
        }
    }
    Ok(tokens)
}

/// `NATIONAL VARCHAR(9)` and `NVARCHAR(9)` as `VARCHAR(9)`: all texts are of Unicode.
fn national_text(tokens: &mut [TokenWithSpan], at: usize, next: Option<usize>) {
    let Some(next) = next else { return };
    if is_word(tokens, at, "national")
        && ["char", "character", "varchar"].iter().any(|wanted| is_word(tokens, next, wanted))
    {
        put(tokens, at, Token::Whitespace(Whitespace::Space));
    } else if is_open(tokens, Some(next)) && is_word(tokens, at, "nchar") {
        put(tokens, at, word("CHAR", Keyword::CHAR));
    } else if is_open(tokens, Some(next)) && is_word(tokens, at, "nvarchar") {
        put(tokens, at, word("VARCHAR", Keyword::VARCHAR));
    }
}

fn is_word(tokens: &[TokenWithSpan], at: usize, wanted: &str) -> bool {
    matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn put(tokens: &mut [TokenWithSpan], at: usize, token: Token) {
    if let Some(place) = tokens.get_mut(at) {
        place.token = token;
    }
}

fn is_open(tokens: &[TokenWithSpan], at: Option<usize>) -> bool {
    at.and_then(|at| tokens.get(at)).is_some_and(|token| token.token == Token::LParen)
}

/// A literal and a composite unit as a number of the least unit.
fn interval(tokens: &mut [TokenWithSpan], value: Option<usize>, unit: Option<usize>) -> Result<()> {
    let (Some(value), Some(unit)) = (value, unit) else { return Ok(()) };
    let (Some(literal), Some(Token::Word(name))) =
        (tokens.get(value).map(|token| &token.token), tokens.get(unit).map(|token| &token.token))
    else {
        return Ok(());
    };
    let Some((name, least, factors)) =
        UNITS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(&name.value))
    else {
        return Ok(());
    };
    let (Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) | Token::Number(text, _)) =
        literal
    else {
        return Err(unfit(name));
    };
    let number = count(text, factors, least).ok_or_else(|| unfit(name))?;
    put(tokens, value, Token::SingleQuotedString(number.to_string()));
    let keyword = match *least {
        "MONTH" => Keyword::MONTH,
        "HOUR" => Keyword::HOUR,
        "MINUTE" => Keyword::MINUTE,
        "SECOND" => Keyword::SECOND,
        _ => Keyword::MICROSECOND,
    };
    put(tokens, unit, word(least, keyword));
    Ok(())
}

fn unfit(unit: &str) -> Error {
    let message = format!("an interval of {unit} takes a literal text with its parts");
    Error::new(ErrorKind::Syntax, message).with_hint("write it as in `INTERVAL '1:30' MINUTE_SECOND`")
}

/// The parts of a text, whatever stands between them, as one number: where there are fewer than there may be, the first are
/// missing. Microseconds are the digits of a fraction.
fn count(text: &str, factors: &[i64], least: &str) -> Option<i64> {
    let is_negative = text.trim_start().starts_with('-');
    let mut parts: Vec<String> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    if parts.is_empty() || parts.len() > factors.len() {
        return None;
    }
    if least == "MICROSECOND"
        && let Some(last) = parts.last_mut()
    {
        *last = format!("{last:0<6}");
        last.truncate(6);
    }
    let factors = factors.get(factors.len() - parts.len()..)?;
    let total = parts.iter().zip(factors).try_fold(0_i64, |sum, (part, factor)| {
        part.parse::<i64>().ok()?.checked_mul(*factor)?.checked_add(sum)
    })?;
    Some(if is_negative { -total } else { total })
}

/// `LOCK IN SHARE MODE` as `FOR SHARE`.
fn share(tokens: &mut [TokenWithSpan], places: [Option<usize>; 4]) {
    let [Some(lock), Some(within), Some(share), Some(mode)] = places else { return };
    let words = [(within, "in"), (share, "share"), (mode, "mode")];
    if !words.iter().all(|(at, wanted)| is_word(tokens, *at, wanted)) {
        return;
    }
    put(tokens, lock, word("FOR", Keyword::FOR));
    put(tokens, within, word("SHARE", Keyword::SHARE));
    for at in [share, mode] {
        put(tokens, at, Token::Whitespace(Whitespace::Space));
    }
}
