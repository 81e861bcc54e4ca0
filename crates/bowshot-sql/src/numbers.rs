//! Whole numbers in other digits than ten: `0xFF`, `0o17`, `0b101`, as PostgreSQL 16 and DuckDB read them. The tokenizer takes
//! the first for bytes, and the others for a zero and a name.

use crate::dialect::DialectName;
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The tokens with such numbers in ten digits. In MySQL they are bytes.
pub(crate) fn in_digits(tokens: Vec<TokenWithSpan>, dialect: DialectName) -> Result<Vec<TokenWithSpan>> {
    if dialect == DialectName::MySql {
        return Ok(tokens);
    }
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let (start, radix, digits) = match (&token.token, kept.last()) {
            (Token::HexStringLiteral(digits), _) if is_number(digits, token.span) => {
                (token.span.start, 16, digits.as_str())
            }
            (Token::Word(word), Some(zero)) if word.quote_style.is_none() && is_zero_before(zero, &token) => {
                match radix(&word.value) {
                    Some((radix, digits)) => (zero.span.start, radix, digits),
                    None => {
                        kept.push(token);
                        continue;
                    }
                }
            }
            _ => {
                kept.push(token);
                continue;
            }
        };
        let number = Token::Number(number(digits, radix)?, false);
        let number = TokenWithSpan::new(number, Span::new(start, token.span.end));
        if matches!(token.token, Token::Word(_)) {
            kept.pop();
        }
        kept.push(number);
    }
    Ok(kept)
}

/// Whether it is `0xFF`, not `x'FF'`, which has one character more.
fn is_number(digits: &str, span: Span) -> bool {
    let width = span.end.column.saturating_sub(span.start.column);
    span.start.line == span.end.line && width == digits.chars().count() as u64 + 2
}

fn is_zero_before(zero: &TokenWithSpan, token: &TokenWithSpan) -> bool {
    zero.span.end == token.span.start && matches!(&zero.token, Token::Number(zero, false) if zero == "0")
}

/// `b101`, `o17` and `XFF` behind a zero; `None` for a name.
fn radix(word: &str) -> Option<(u32, &str)> {
    let digits = word.get(1..)?;
    let first = digits.trim_start_matches('_').chars().next()?;
    let radix = match word.chars().next()? {
        'b' | 'B' => 2,
        'o' | 'O' => 8,
        'x' | 'X' => 16,
        _ => return None,
    };
    first.is_digit(radix.max(10)).then_some((radix, digits))
}

fn number(digits: &str, radix: u32) -> Result<String> {
    let wrong = || {
        let prefix = match radix {
            2 => "0b",
            8 => "0o",
            _ => "0x",
        };
        Error::new(ErrorKind::Syntax, format!("syntax error: `{prefix}{digits}` is not a number"))
    };
    if digits.ends_with('_') || digits.contains("__") {
        return Err(wrong());
    }
    u128::from_str_radix(&digits.replace('_', ""), radix)
        .map(|number| number.to_string())
        .map_err(|_| wrong())
}
