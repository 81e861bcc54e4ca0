//! Dates and times of a workbook: days since the end of 1899, with a fraction.

use chrono::{Days, NaiveDate, NaiveTime};

const DAY_MS: f64 = 86_400_000.0;
/// Days between the two ways of counting: since 1900 and since 1904.
const DAYS_TO_1904: i64 = 1_462;
/// The last day that there is: 9999-12-31.
const LAST_DAY: f64 = 2_958_466.0;

/// What a number is, by its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Format {
    #[default]
    Number,
    Date,
    /// A time of day.
    Time,
}

/// What the format of a number shows, of the ones that every workbook has.
pub(super) fn usual(number: u32) -> Format {
    match number {
        14..=17 | 22 | 27..=31 | 36 | 50..=54 | 57 | 58 => Format::Date,
        18..=21 | 32..=35 | 45 | 47 | 55 | 56 => Format::Time,
        _ => Format::Number,
    }
}

/// What a format of the workbook's own shows: `dd.mm.yyyy`, but not `0" days"` or `[h]:mm`, which is a duration.
pub(super) fn written(code: &str) -> Format {
    let (mut quoted, mut bracket, mut escaped) = (false, false, false);
    let (mut date, mut time) = (false, false);
    // Behind a semicolon is the format of negative numbers.
    for character in code.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' | '_' | '*' if !quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' => bracket = true,
            ']' => bracket = false,
            'h' | 'H' | 's' | 'S' | 'm' | 'M' if bracket => return Format::Number,
            _ if bracket => {}
            ';' => break,
            'y' | 'Y' | 'd' | 'D' => date = true,
            'h' | 'H' | 's' | 'S' => time = true,
            'e' | 'E' | 'g' | 'G' | '0' | '#' | '?' if !date && !time => return Format::Number,
            'm' | 'M' => date |= !time && !code.contains(['h', 'H', 's', 'S']),
            _ => {}
        }
    }
    match (date, time) {
        (true, _) => Format::Date,
        (false, true) => Format::Time,
        (false, false) => Format::Number,
    }
}

/// A number as the date or time that it shows; `None` if it shows none.
pub(super) fn shown(number: &str, format: Format, since_1904: bool) -> Option<String> {
    let value: f64 = number.trim().parse().ok()?;
    if format == Format::Number || !(0.0..LAST_DAY).contains(&value) {
        return None;
    }
    let (mut day, mut ms) = (value.trunc() as i64, (value.fract() * DAY_MS).round() as u32);
    if ms >= DAY_MS as u32 {
        (day, ms) = (day + 1, 0);
    }
    let time = NaiveTime::from_num_seconds_from_midnight_opt(ms / 1_000, ms % 1_000 * 1_000_000)?;
    let clock = if ms % 1_000 == 0 { time.format("%H:%M:%S") } else { time.format("%H:%M:%S%.3f") };
    if format == Format::Time {
        return (day == 0).then(|| clock.to_string());
    }
    if since_1904 {
        day += DAYS_TO_1904;
    } else if day < 60 {
        // Excel counts 29 February 1900, which there was not.
        day += 1;
    }
    let date =
        NaiveDate::from_ymd_opt(1899, 12, 30)?.checked_add_days(Days::new(u64::try_from(day).ok()?))?;
    Some(match ms {
        0 => date.to_string(),
        _ => format!("{date} {clock}"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Format, shown, usual, written};

    #[test]
    fn formats_tell_dates_from_numbers() {
        for (code, expected) in [
            ("dd.mm.yyyy", Format::Date),
            ("yyyy\\-mm\\-dd hh:mm:ss", Format::Date),
            ("mmm", Format::Date),
            ("hh:mm", Format::Time),
            ("mm:ss.0", Format::Time),
            ("[h]:mm:ss", Format::Number),
            ("0.00", Format::Number),
            ("0\" days\"", Format::Number),
            ("#,##0.00 [$€-407]", Format::Number),
            ("[Red]dd/mm", Format::Date),
            ("General", Format::Number),
            ("0.00E+00", Format::Number),
        ] {
            assert_eq!(written(code), expected, "{code}");
        }
        assert_eq!(
            (usual(14), usual(0), usual(20), usual(9)),
            (Format::Date, Format::Number, Format::Time, Format::Number)
        );
    }

    #[test]
    fn days_are_counted_as_excel_does() {
        for (number, format, since_1904, expected) in [
            ("45322", Format::Date, false, Some("2024-01-31")),
            ("45322.5", Format::Date, false, Some("2024-01-31 12:00:00")),
            ("45322.000011574", Format::Date, false, Some("2024-01-31 00:00:01")),
            ("1", Format::Date, false, Some("1900-01-01")),
            ("61", Format::Date, false, Some("1900-03-01")),
            ("0", Format::Date, true, Some("1904-01-01")),
            ("0.75", Format::Time, false, Some("18:00:00")),
            ("1.5", Format::Time, false, None),
            ("-1", Format::Date, false, None),
            ("1e300", Format::Date, false, None),
            ("45322", Format::Number, false, None),
        ] {
            assert_eq!(shown(number, format, since_1904).as_deref(), expected, "{number}");
        }
    }
}
