//! JSONB as texts that are in PostgreSQL's order of JSONB, and equal where the values are: an object is above an array, then come
//! truth values, numbers, texts and null; of two arrays or objects the longer one is above (PostgreSQL manual, 8.14.4).

use super::value::Json;

/// Powers of ten of a number, which the key has as so many digits.
const MIDDLE: i64 = 5_000_000_000;

pub(super) fn order_key(document: &Json<'_>) -> String {
    match document {
        // An empty array is below all else, unless something is around it.
        Json::Array(elements) if elements.is_empty() => "0".to_owned(),
        document => {
            let mut key = String::new();
            write(document, &mut key);
            key
        }
    }
}

fn write(value: &Json<'_>, key: &mut String) {
    match value {
        Json::Null => key.push('1'),
        Json::Text(text) => {
            key.push('2');
            write_text(text, key);
        }
        Json::Number(digits) => {
            key.push('3');
            write_number(digits, key);
        }
        Json::Bool(truth) => key.push(if *truth { '5' } else { '4' }),
        Json::Array(elements) => {
            key.push_str(&format!("6{:08x}", elements.len()));
            elements.iter().for_each(|element| write(element, key));
        }
        Json::Object(members) => {
            key.push_str(&format!("7{:08x}", members.len()));
            for (name, value) in members {
                write_text(name, key);
                write(value, key);
            }
        }
    }
}

/// Its end is below all characters.
fn write_text(text: &str, key: &mut String) {
    key.push_str(&text.replace('\0', "\0\u{1}"));
    key.push_str("\0\0");
}

/// The sign, the power of ten of the first digit, and the digits without zeros around them; of a negative number, the reverse of each.
fn write_number(number: &str, key: &mut String) {
    let (negative, rest) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let zeros = all.len() - digits.len();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        key.push('1');
        return;
    }
    // Exponents that are no number of 64 bits are beyond all others.
    let beyond = if exponent.starts_with('-') { -MIDDLE } else { MIDDLE };
    let length = |count: usize| i64::try_from(count).unwrap_or(MIDDLE);
    let power = exponent.parse::<i64>().unwrap_or(beyond);
    let power = power.saturating_add(length(whole.len())).saturating_sub(length(zeros));
    let power = power.clamp(1 - MIDDLE, MIDDLE - 1) + MIDDLE;
    if negative {
        key.push_str(&format!("0{:010}", 2 * MIDDLE - power));
        key.extend(digits.bytes().map(|digit| char::from(b'9' - digit.min(b'9') + b'0')));
        key.push('~');
    } else {
        key.push_str(&format!("2{power:010}{digits} "));
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::Reader;
    use super::*;

    fn key(text: &str) -> String {
        order_key(&Reader::tree(text).unwrap().into_normal())
    }

    /// As PostgreSQL 15 orders them.
    #[test]
    fn values_are_in_order() {
        let scalars = r#"[] null "" "a" "a\u0001" "ab" "b" -1e2000 -10 -9.5 -9 -0.01 0 1e-2000 0.001 99e-4 1e-2 0.011 1 1.05 1.5 9 10 100 1e2000 false true"#;
        let nested =
            r#"[null] [1] [[]] [1,1] [1,2] [1,1,1] {} {"a":1} {"a":[1]} {"aa":1} {"b":0} {"a":1,"b":1}"#;
        let ordered: Vec<&str> = scalars.split(' ').chain(nested.split(' ')).collect();
        for pair in ordered.windows(2) {
            let [less, greater] = pair else { unreachable!("windows of two") };
            assert!(key(less) < key(greater), "{less} < {greater}");
        }
    }

    #[test]
    fn equal_values_have_one_key() {
        for (one, other) in [
            ("1", "1.0"),
            ("10", "1e1"),
            ("-0", "0.00"),
            ("0.5", "5e-1"),
            ("-0.001", "-1e-3"),
            ("[-1.50]", "[-15e-1]"),
        ] {
            assert_eq!(key(one), key(other), "{one} = {other}");
        }
        assert_eq!(key(r#"{"b": 1, "a": 2}"#), key(r#"{"a": 2, "b": 1.0}"#));
    }
}
