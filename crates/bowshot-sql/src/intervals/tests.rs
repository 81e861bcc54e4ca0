//! Intervals from texts of every form.

use super::*;

/// Months, days and microseconds.
fn parts_of(text: &str, fields: Fields) -> (i32, i32, i64) {
    let interval = read(text, fields).unwrap_or_else(|error| panic!("{text}: {error}"));
    (interval.months, interval.days, interval.nanoseconds / 1000)
}

const TIME: i64 = 14_706_000_000;

#[test]
fn texts_are_read_as_postgresql_reads_them() {
    for (text, expected) in [
        ("1 year 2 months", (14, 0, 0)),
        ("1 year 2 months 3 days 4 hours 5 minutes 6.5 seconds", (14, 3, TIME + 500_000)),
        ("3 days 04:05:06", (0, 3, TIME)),
        ("-3 days 04:05:06", (0, -3, TIME)),
        ("-3 days -04:05:06", (0, -3, -TIME)),
        ("3 04:05:06", (0, 3, TIME)),
        ("1-2", (14, 0, 0)),
        ("-1-2", (-14, 0, 0)),
        ("1-2 3 4:05:06", (14, 3, TIME)),
        ("1 day ago", (0, -1, 0)),
        ("@ 1 day -2 hours ago", (0, -1, 7_200_000_000)),
        ("90", (0, 0, 90_000_000)),
        ("04:05", (0, 0, 14_700_000_000)),
        ("100:00:00", (0, 0, 360_000_000_000)),
        ("1.5 years", (18, 0, 0)),
        ("1.5 months", (1, 15, 0)),
        ("1.5 weeks", (0, 10, 43_200_000_000)),
        ("1.5 days", (0, 1, 43_200_000_000)),
        ("-1.5 days", (0, -1, -43_200_000_000)),
        (".5 hours", (0, 0, 1_800_000_000)),
        ("1day2h", (0, 1, 7_200_000_000)),
        ("  2 DAYS  ", (0, 2, 0)),
        ("1 decade 1 century 1 millennium", (13_320, 0, 0)),
        ("P1Y2M3DT4H5M6S", (14, 3, TIME)),
        ("P1Y2M3DT4H", (14, 3, 14_400_000_000)),
        ("P0001-02-03T04:05:06", (14, 3, TIME)),
        ("P-1W", (0, -7, 0)),
        ("PT0.5S", (0, 0, 500_000)),
        ("14 months 3 days 14706000000000 nanoseconds", (14, 3, TIME)),
    ] {
        assert_eq!(parts_of(text, Fields::default()), expected, "{text}");
    }
}

#[test]
fn units_behind_a_literal_say_what_it_counts_and_what_is_cut_off() {
    let fields =
        |first: &str, last: &str| Fields { first: Unit::named(first), last: Unit::named(last), digits: None };
    for (text, fields, expected) in [
        ("1-2", fields("year", "month"), (14, 0, 0)),
        ("5", fields("year", "month"), (5, 0, 0)),
        ("5", fields("day", ""), (0, 5, 0)),
        ("1:30", fields("minute", "second"), (0, 0, 90_000_000)),
        ("1:30", fields("hour", "minute"), (0, 0, 5_400_000_000)),
        ("90", fields("minute", ""), (0, 0, 5_400_000_000)),
        ("1 day 04:05:06", fields("day", "hour"), (0, 1, 14_400_000_000)),
        ("14 months 3 days", fields("year", ""), (12, 0, 0)),
        ("1 day 04:05:06", fields("day", ""), (0, 1, 0)),
    ] {
        assert_eq!(parts_of(text, fields), expected, "{text}");
    }
    let tenths = Fields { first: Some(Unit::Second), last: None, digits: Some(1) };
    assert_eq!(parts_of("1.25", tenths), (0, 0, 1_300_000));
}

#[test]
fn what_is_no_interval_is_refused() {
    for text in [
        "",
        "   ",
        "x",
        "day",
        "1 x",
        "1 2",
        "1 day 2 days",
        "ago",
        "1 day ago 2",
        "2024-01-01",
        "1:",
        "1:60",
        "P",
        "PT",
        "P1",
        "1-12",
        "1..2",
        "-",
        ".",
        "99999999999 years",
        "1 day ago ago",
    ] {
        assert!(read_interval(text).is_err(), "{text}");
    }
    assert_eq!(read_interval("x").unwrap_err().message(), "invalid input syntax for type interval: \"x\"");
}

#[test]
fn a_text_of_whole_parts_is_the_same_interval() {
    for text in ["-3 days 04:05:06", "1-2", "0 days", "-1 months 5 days -00:00:01"] {
        let interval = read_interval(text).unwrap();
        assert_eq!(read_interval(&interval.text()).unwrap(), interval, "{text}");
    }
}
