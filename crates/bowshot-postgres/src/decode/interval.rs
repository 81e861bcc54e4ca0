//! Intervals in text (PostgreSQL manual, "Interval Input"): quantities with units, a time of day, or ISO 8601.

/// Months, days and microseconds, while they are added up.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
}

/// A decimal number as a whole part and millionths, both with its sign.
#[derive(Clone, Copy)]
struct Quantity {
    whole: i64,
    millionths: i64,
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Reads an interval; `None` for a text that is none.
pub(super) fn parse(text: &str) -> Option<(i32, i32, i64)> {
    let mut sum = Sum::default();
    match text.strip_prefix(['P', 'p']) {
        Some(iso) => sum.add_iso(iso)?,
        None => sum.add_words(text)?,
    }
    Some((i32::try_from(sum.months).ok()?, i32::try_from(sum.days).ok()?, sum.micros))
}

impl Sum {
    fn add_words(&mut self, text: &str) -> Option<()> {
        let mut words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
        let mut any = false;
        while let Some(word) = words.next() {
            if word.contains(':') {
                self.micros = self.micros.checked_add(time(word)?)?;
            } else if word.eq_ignore_ascii_case("ago") && any && words.next().is_none() {
                (self.months, self.days, self.micros) =
                    (-self.months, -self.days, self.micros.checked_neg()?);
                return Some(());
            } else if word != "@" {
                let digits = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
                let (number, unit) = word.split_at_checked(digits)?;
                // A number alone counts seconds.
                let unit = if unit.is_empty() { words.next().unwrap_or("s") } else { unit };
                self.add(quantity(number)?, unit)?;
            }
            any = word != "@" || any;
        }
        any.then_some(())
    }

    /// What follows the `P`.
    fn add_iso(&mut self, text: &str) -> Option<()> {
        let mut rest = text;
        let mut in_time = false;
        let mut any = false;
        while let Some(first) = rest.chars().next() {
            if first.eq_ignore_ascii_case(&'T') && !in_time {
                in_time = true;
                rest = rest.get(1..)?;
                continue;
            }
            let digits = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let (number, after) = rest.split_at_checked(digits)?;
            let (unit, after) = after.split_at_checked(1)?;
            let unit = match (unit.to_ascii_uppercase().as_str(), in_time) {
                ("Y", false) => "year",
                ("M", false) => "month",
                ("W", false) => "week",
                ("D", false) => "day",
                ("H", true) => "hour",
                ("M", true) => "minute",
                ("S", true) => "second",
                _ => return None,
            };
            self.add(quantity(number)?, unit)?;
            any = true;
            rest = after;
        }
        any.then_some(())
    }

    /// Parts of a unit become smaller ones, as in PostgreSQL: a month has 30 days then, a day 24 hours.
    fn add(&mut self, quantity: Quantity, unit: &str) -> Option<()> {
        let unit = unit.to_ascii_lowercase();
        match unit.as_str() {
            "millennium" | "millennia" | "millenniums" => self.add_months(quantity, 12_000),
            "century" | "centuries" | "c" => self.add_months(quantity, 1_200),
            "decade" | "decades" | "decs" => self.add_months(quantity, 120),
            "year" | "years" | "yr" | "yrs" | "y" => self.add_months(quantity, 12),
            "month" | "months" | "mon" | "mons" => {
                self.months = self.months.checked_add(quantity.whole)?;
                self.add_days(Quantity { whole: 0, millionths: quantity.millionths }, 30)
            }
            "week" | "weeks" | "w" => self.add_days(quantity, 7),
            "day" | "days" | "d" => self.add_days(quantity, 1),
            "hour" | "hours" | "hr" | "hrs" | "h" => self.add_micros(quantity, 3_600 * SECOND),
            "minute" | "minutes" | "min" | "mins" | "m" => self.add_micros(quantity, 60 * SECOND),
            "second" | "seconds" | "sec" | "secs" | "s" => self.add_micros(quantity, SECOND),
            "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => self.add_micros(quantity, 1_000),
            "microsecond" | "microseconds" | "usec" | "usecs" | "us" => self.add_micros(quantity, 1),
            _ => None,
        }
    }

    fn add_months(&mut self, quantity: Quantity, months: i64) -> Option<()> {
        let parts = quantity.millionths.checked_mul(months)? / SECOND;
        self.months = self.months.checked_add(quantity.whole.checked_mul(months)?)?.checked_add(parts)?;
        Some(())
    }

    fn add_days(&mut self, quantity: Quantity, days: i64) -> Option<()> {
        let parts = quantity.millionths.checked_mul(days)?;
        let whole = quantity.whole.checked_mul(days)?.checked_add(parts / SECOND)?;
        self.days = self.days.checked_add(whole)?;
        self.micros = self.micros.checked_add((parts % SECOND).checked_mul(DAY / SECOND)?)?;
        Some(())
    }

    fn add_micros(&mut self, quantity: Quantity, micros: i64) -> Option<()> {
        let whole = quantity.whole.checked_mul(micros)?;
        let parts =
            i64::try_from(i128::from(quantity.millionths) * i128::from(micros) / i128::from(SECOND)).ok()?;
        self.micros = self.micros.checked_add(whole)?.checked_add(parts)?;
        Some(())
    }
}

fn quantity(text: &str) -> Option<Quantity> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if unsigned.is_empty() || unsigned == "." || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let millionths: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let sign = if negative { -1 } else { 1 };
    Some(Quantity { whole: whole * sign, millionths: millionths * sign })
}

/// `[+-]hours:minutes[:seconds]` in microseconds.
fn time(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let (hours, minutes) = (quantity(parts.next()?)?, quantity(parts.next()?)?);
    let seconds = parts.next().map_or(Some(Quantity { whole: 0, millionths: 0 }), quantity)?;
    if parts.next().is_some() || hours.millionths != 0 || minutes.millionths != 0 {
        return None;
    }
    if !(0..60).contains(&minutes.whole) || !(0..=60).contains(&seconds.whole) || hours.whole < 0 {
        return None;
    }
    let whole = hours.whole.checked_mul(3_600)?.checked_add(minutes.whole * 60 + seconds.whole)?;
    let micros = whole.checked_mul(SECOND)?.checked_add(seconds.millionths)?;
    Some(if text.starts_with('-') { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_as_postgresql_reads_them() {
        for (text, expected) in [
            ("1 year 2 mons 3 days 04:05:06.5", Some((14, 3, 14_706_500_000))),
            ("-1 days +00:00:00.5", Some((0, -1, 500_000))),
            ("1 day, 2:03:04", Some((0, 1, 7_384_000_000))),
            ("@ 1 minute ago", Some((0, 0, -60_000_000))),
            ("1.5 days", Some((0, 1, 43_200_000_000))),
            ("1.5 mons", Some((1, 15, 0))),
            ("1.5 years", Some((18, 0, 0))),
            ("1d2h", None),
            ("1d 2h", Some((0, 1, 7_200_000_000))),
            ("90", Some((0, 0, 90_000_000))),
            ("-0.000001 s", Some((0, 0, -1))),
            ("P1Y2M3W4DT5H6M7.5S", Some((14, 25, 18_367_500_000))),
            ("PT-1S", Some((0, 0, -1_000_000))),
            ("P", None),
            ("P1H", None),
            ("", None),
            ("1 fortnight", None),
            ("1:2:3:4", None),
            ("99999999999 years", None),
            ("9223372036854775807 hours", None),
            ("1e5 days", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
