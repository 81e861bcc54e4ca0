//! How far the clock of a time zone is ahead of UTC. The tables of time zones end with the year 2099; later years follow the last
//! rule of a zone, as in PostgreSQL.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Days, LocalResult, NaiveDateTime, Offset, TimeZone};

const DAY: i64 = 86_400;
/// The calendar repeats itself after 400 years, weekdays included.
const DAYS_OF_400_YEARS: i64 = 146_097;
/// 2072-01-01 in days since 1970. Each form of a year is among the 28 years from there to the end of the tables.
const LAST_FORMS: i64 = 37_255;
/// 2100-01-01.
const END_OF_TABLES: i64 = 47_482;
/// 2099-01-15 and 2099-07-15.
const LAST_SEASONS: [i64; 2] = [47_131, 47_312];

/// Seconds by which the clock is ahead of UTC at an instant, in seconds since 1970; zero beyond the years that have a calendar.
///
/// ```
/// let berlin = "Europe/Berlin".parse().unwrap();
/// // 2024-07-01 and 2150-07-01, both at 12:00.
/// assert_eq!(bowshot_api::offset_of_instant(berlin, 1_719_835_200), 7_200);
/// assert_eq!(bowshot_api::offset_of_instant(berlin, 5_695_963_200), 7_200);
/// ```
pub fn offset_of_instant(zone: Tz, seconds: i64) -> i32 {
    naive(in_tables(zone, seconds)).map_or(0, |utc| offset_at(zone, utc))
}

/// The same for what the clock shows. What it shows twice is the later, in standard time; in the hour that it leaves out the
/// offset before counts: both as PostgreSQL has it.
pub fn offset_of_clock(zone: Tz, seconds: i64) -> i32 {
    let Some(clock) = naive(in_tables(zone, seconds)) else { return 0 };
    match zone.offset_from_local_datetime(&clock) {
        LocalResult::Single(offset) => offset.fix().local_minus_utc(),
        LocalResult::Ambiguous(one, other) => one.fix().local_minus_utc().min(other.fix().local_minus_utc()),
        LocalResult::None => {
            // The day before was no change.
            let before = clock.checked_sub_days(Days::new(1));
            let before = before.and_then(|before| zone.offset_from_local_datetime(&before).earliest());
            before.map_or(0, |offset| offset.fix().local_minus_utc())
        }
    }
}

fn naive(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp(seconds, 0).map(|moment| moment.naive_utc())
}

fn offset_at(zone: Tz, utc: NaiveDateTime) -> i32 {
    zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()
}

/// The same moment of a year within the tables that has as many days and begins on the same weekday, which rules of summer time
/// are about. A zone without such a rule at the end of the tables stays as it is there.
fn in_tables(zone: Tz, seconds: i64) -> i64 {
    let days = seconds.div_euclid(DAY);
    if days < END_OF_TABLES {
        return seconds;
    }
    let [winter, summer] = LAST_SEASONS.map(|day| naive(day * DAY).map(|utc| offset_at(zone, utc)));
    if winter == summer {
        return seconds;
    }
    let day = END_OF_TABLES + (days - END_OF_TABLES) % DAYS_OF_400_YEARS;
    let of_day = years(2100, END_OF_TABLES).find(|(start, length)| day < start + length);
    let Some((start, length)) = of_day else { return seconds };
    // The last one: up to 2086, tables have exceptions that no rule has.
    let same = years(2072, LAST_FORMS)
        .take_while(|(other, _)| *other < END_OF_TABLES)
        .filter(|(other, other_length)| (start - other) % 7 == 0 && length == *other_length)
        .last();
    same.map_or(seconds, |(other, _)| seconds - (days - day + start - other) * DAY)
}

/// The days on which years begin, from one on, and how many days they have.
fn years(first: i64, mut start: i64) -> impl Iterator<Item = (i64, i64)> {
    (first..).map(move |year| {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = if is_leap { 366 } else { 365 };
        start += length;
        (start - length, length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> i64 {
        text.parse::<NaiveDateTime>().unwrap().and_utc().timestamp()
    }

    #[test]
    fn years_behind_the_tables_follow_the_last_rule() {
        // As PostgreSQL 15 has them.
        for (zone, utc, hours) in [
            ("America/New_York", "2099-07-01T12:00:00", -4),
            ("America/New_York", "2100-07-01T00:00:00", -4),
            ("America/New_York", "2104-11-02T05:59:59", -4),
            ("America/New_York", "2104-11-02T06:00:00", -5),
            ("America/New_York", "2150-03-08T06:59:59", -5),
            ("America/New_York", "2150-03-08T07:00:00", -4),
            ("America/New_York", "9999-07-01T12:00:00", -4),
            ("America/New_York", "9999-12-31T12:00:00", -5),
            ("Europe/Berlin", "2400-07-01T12:00:00", 2),
            ("Australia/Sydney", "2300-01-01T12:00:00", 11),
            ("Africa/Casablanca", "2150-07-01T12:00:00", 1),
            ("Asia/Gaza", "2126-08-20T12:00:00", 3),
            ("Asia/Tokyo", "2150-07-01T12:00:00", 9),
        ] {
            let offset = offset_of_instant(zone.parse().unwrap(), seconds(utc));
            assert_eq!(offset, hours * 3_600, "{zone} {utc}");
        }
    }

    #[test]
    fn clocks_show_times_twice_or_never() {
        let new_york = "America/New_York".parse().unwrap();
        for (clock, hours) in [
            ("2024-03-10T02:30:00", -5),
            ("2024-11-03T01:30:00", -5),
            ("2150-03-08T02:30:00", -5),
            ("2150-07-01T12:00:00", -4),
            ("2104-11-02T01:30:00", -5),
        ] {
            assert_eq!(offset_of_clock(new_york, seconds(clock)), hours * 3_600, "{clock}");
        }
    }
}
