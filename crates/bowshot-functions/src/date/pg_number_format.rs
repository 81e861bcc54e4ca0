//! Numbers as text by patterns of PostgreSQL: `FM999,990.00`, `9.99EEEE`, `RN`.

use super::pg_format::{ending, roman};
use datafusion::common::{Result, exec_err};

#[derive(Debug, Default)]
struct Pattern {
    tokens: Vec<Token>,
    bare: bool,
    before: usize,
    after: usize,
    /// The position among the digits before the point from which on zeros are shown.
    zeros_from: Option<usize>,
    sign: Sign,
    roman: bool,
    scientific: bool,
    shift: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sign {
    #[default]
    Anchored,
    /// `S` before the number, which shows a plus too.
    Leading,
    /// `S`, `MI`, `PL` or `SG`, which stand where they stand.
    Placed,
    Brackets,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Nine,
    Zero,
    Point,
    Group,
    SignAtEnd,
    Minus,
    Plus,
    Either,
    Currency,
    OrdinalUpper,
    OrdinalLower,
    Text(char),
}

fn parse(pattern: &str) -> Result<Pattern> {
    let mut found = Pattern::default();
    let (mut rest, mut after_point, mut after_v) = (pattern, false, false);
    while let Some(first) = rest.chars().next() {
        let two = rest.get(..2).unwrap_or_default();
        let upper = two.to_ascii_uppercase();
        let mut length = 2;
        match upper.as_str() {
            "FM" => found.bare = true,
            "PR" => found.sign = Sign::Brackets,
            "MI" => (found.sign, _) = (Sign::Placed, found.tokens.push(Token::Minus)),
            "PL" => found.tokens.push(Token::Plus),
            "SG" => (found.sign, _) = (Sign::Placed, found.tokens.push(Token::Either)),
            "RN" => found.roman = true,
            "TH" if two == "th" => found.tokens.push(Token::OrdinalLower),
            "TH" => found.tokens.push(Token::OrdinalUpper),
            "EE" => {
                found.scientific = true;
                length = rest.bytes().take(4).take_while(|byte| byte.eq_ignore_ascii_case(&b'E')).count();
            }
            _ => {
                length = first.len_utf8();
                match first {
                    '9' | '0' => {
                        if after_point {
                            found.after += 1;
                        } else {
                            if first == '0' && found.zeros_from.is_none() {
                                found.zeros_from = Some(found.before);
                            }
                            found.before += 1;
                        }
                        found.shift += usize::from(after_v);
                        found.tokens.push(if first == '9' { Token::Nine } else { Token::Zero });
                    }
                    '.' | 'D' | 'd' if !after_point => {
                        after_point = true;
                        found.tokens.push(Token::Point);
                    }
                    '.' | 'D' | 'd' => {
                        return exec_err!("the pattern `{pattern}` has more than one decimal point");
                    }
                    ',' | 'G' | 'g' => found.tokens.push(Token::Group),
                    'V' | 'v' => after_v = true,
                    'S' | 's' if found.before == 0 && found.after == 0 => found.sign = Sign::Leading,
                    'S' | 's' => (found.sign, _) = (Sign::Placed, found.tokens.push(Token::SignAtEnd)),
                    'L' | 'l' => found.tokens.push(Token::Currency),
                    'B' | 'b' => {}
                    '"' => {
                        let quoted: String = rest.chars().skip(1).take_while(|c| *c != '"').collect();
                        length = (quoted.len() + 2).min(rest.len());
                        found.tokens.extend(quoted.chars().map(Token::Text));
                    }
                    other => found.tokens.push(Token::Text(other)),
                }
            }
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(found)
}

struct Digits {
    negative: bool,
    whole: String,
    fraction: String,
}

/// Reads a number as Arrow shows it; none when it is not finite.
fn digits_of(number: &str) -> Option<Digits> {
    let plain = if number.contains(['e', 'E']) {
        let value: f64 = number.parse().ok()?;
        format!("{value}")
    } else {
        number.to_owned()
    };
    let (negative, plain) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, plain.as_str()),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (all_digits(whole) && all_digits(fraction) && !whole.is_empty()).then(|| Digits {
        negative,
        whole: whole.trim_start_matches('0').to_owned(),
        fraction: fraction.to_owned(),
    })
}

/// Rounds half away from zero to so many digits behind the point.
fn rounded(mut digits: Digits, places: usize, shift: usize) -> Digits {
    let moved: String = digits.fraction.chars().chain(std::iter::repeat('0')).take(shift).collect();
    digits.whole.push_str(&moved);
    digits.fraction = digits.fraction.chars().skip(shift).collect();
    let up = digits.fraction.as_bytes().get(places).is_some_and(|digit| *digit >= b'5');
    let kept: String = digits.fraction.chars().chain(std::iter::repeat('0')).take(places).collect();
    let mut all: Vec<u8> = digits.whole.bytes().chain(kept.bytes()).collect();
    if up {
        let mut carry = true;
        for digit in all.iter_mut().rev() {
            carry = *digit == b'9';
            *digit = if carry { b'0' } else { *digit + 1 };
            if !carry {
                break;
            }
        }
        if carry {
            all.insert(0, b'1');
        }
    }
    let whole = all.len() - places;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (before, after) = all.split_at(whole);
    digits.whole = text(before).trim_start_matches('0').to_owned();
    digits.fraction = text(after);
    digits
}

pub(super) fn write(number: &str, pattern: &str) -> Result<String> {
    let pattern = parse(pattern)?;
    let Some(digits) = digits_of(number) else { return Ok(not_finite(number, &pattern)) };
    if pattern.roman {
        let whole = rounded(digits, 0, 0);
        let value = whole.whole.parse().unwrap_or(0);
        let text = if whole.negative { String::new() } else { roman(value) };
        let text = if text.is_empty() { "#".repeat(15) } else { text };
        return Ok(if pattern.bare { text } else { format!("{text:>15}") });
    }
    if pattern.scientific {
        return Ok(scientific(number, &pattern));
    }
    let mut digits = rounded(digits, pattern.after, pattern.shift);
    // There is no negative zero.
    digits.negative &= !digits.whole.is_empty() || digits.fraction.bytes().any(|digit| digit != b'0');
    Ok(compose(&pattern, &digits))
}

fn not_finite(number: &str, pattern: &Pattern) -> String {
    let width = pattern.before + pattern.after;
    if number.eq_ignore_ascii_case("nan") {
        format!(" {:>width$}", "NaN")
    } else {
        format!(" {}", "#".repeat(width))
    }
}

fn scientific(number: &str, pattern: &Pattern) -> String {
    let value: f64 = number.parse().unwrap_or(f64::NAN);
    let text = format!("{:.*e}", pattern.after, value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = match (value < 0.0, pattern.sign, pattern.bare) {
        (true, ..) => "-",
        (false, Sign::Leading, _) => "+",
        (false, _, true) => "",
        (false, _, false) => " ",
    };
    format!("{sign}{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Walks over the tokens and puts digits, signs and text in their places.
fn compose(pattern: &Pattern, digits: &Digits) -> String {
    let overflow = digits.whole.len() > pattern.before;
    let skipped = pattern.before.saturating_sub(digits.whole.len());
    let zeros_from = pattern.zeros_from.unwrap_or(usize::MAX);
    // A zero before the point is shown only where the pattern has no place behind it, or shows zeros.
    let all_zero = digits.whole.is_empty() && digits.fraction.bytes().all(|digit| digit == b'0');
    let lone_zero = digits.whole.is_empty() && (pattern.after == 0 || (pattern.bare && all_zero));
    let relevant = last_relevant(pattern, digits);
    let (mut before, mut after, mut started, mut in_fraction) = (0, 0, false, false);
    let mut text = String::new();
    let mut begin = None;
    for token in &pattern.tokens {
        match token {
            Token::Nine | Token::Zero if !in_fraction => {
                let shown = if overflow {
                    Some('#')
                } else if before >= skipped {
                    digits.whole.chars().nth(before - skipped)
                } else if before >= zeros_from || (lone_zero && before + 1 == pattern.before) {
                    Some('0')
                } else {
                    None
                };
                before += 1;
                started |= shown.is_some();
                match shown {
                    Some(digit) => {
                        begin.get_or_insert(text.len());
                        text.push(digit);
                    }
                    None if !pattern.bare => text.push(' '),
                    None => {}
                }
            }
            Token::Nine | Token::Zero => {
                if !pattern.bare || after < relevant {
                    text.push(if overflow { '#' } else { digits.fraction.chars().nth(after).unwrap_or('0') });
                }
                after += 1;
            }
            Token::Point => {
                in_fraction = true;
                begin.get_or_insert(text.len());
                text.push('.');
            }
            Token::Group if started => text.push(','),
            Token::Group if !pattern.bare => text.push(' '),
            Token::Group => {}
            other => other.place(&mut text, digits, pattern.bare),
        }
    }
    signed(pattern, digits, text, begin.unwrap_or(0))
}

/// Digits behind the point that are shown without padding.
fn last_relevant(pattern: &Pattern, digits: &Digits) -> usize {
    let asked = pattern
        .tokens
        .iter()
        .skip_while(|token| **token != Token::Point)
        .filter(|token| matches!(token, Token::Nine | Token::Zero));
    let zeros = asked
        .enumerate()
        .filter(|(_, token)| **token == Token::Zero)
        .map(|(position, _)| position + 1)
        .last();
    digits.fraction.trim_end_matches('0').len().max(zeros.unwrap_or(0))
}

impl Token {
    /// Text, and signs that stand where they stand.
    fn place(&self, text: &mut String, digits: &Digits, bare: bool) {
        let blank = if bare { "" } else { " " };
        match self {
            Self::SignAtEnd | Self::Either => text.push(if digits.negative { '-' } else { '+' }),
            Self::Minus => text.push_str(if digits.negative { "-" } else { blank }),
            Self::Plus => text.push_str(if digits.negative { blank } else { "+" }),
            Self::Currency => text.push('$'),
            Self::OrdinalUpper if !digits.negative => text.push_str(&ending(&digits.whole).to_uppercase()),
            Self::OrdinalLower if !digits.negative => text.push_str(ending(&digits.whole)),
            Self::Text(character) => text.push(*character),
            _ => {}
        }
    }
}

/// The sign before the first digit, in the place of one more blank.
fn signed(pattern: &Pattern, digits: &Digits, text: String, begin: usize) -> String {
    let (blanks, number) = text.split_at_checked(begin).unwrap_or(("", &text));
    let blank = if pattern.bare { "" } else { " " };
    match pattern.sign {
        Sign::Placed => text,
        Sign::Leading => format!("{blanks}{}{number}", if digits.negative { '-' } else { '+' }),
        Sign::Anchored => format!("{blanks}{}{number}", if digits.negative { "-" } else { blank }),
        Sign::Brackets if digits.negative => format!("{blanks}<{number}>"),
        Sign::Brackets => format!("{blanks}{blank}{number}{blank}"),
    }
}
