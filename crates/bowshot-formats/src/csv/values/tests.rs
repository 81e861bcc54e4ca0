//! Values of separated files, compared with what the standard library reads.

use super::{
    DateOrder, Notation, date, float, huge, integer, is_grouped, is_padded, short_decimal, stamp, time,
};

fn ordered(order: DateOrder) -> Notation {
    Notation { order, ..Notation::default() }
}

#[test]
fn short_decimals_are_what_the_standard_library_reads() {
    let mut seed = 7_u64;
    for round in 0..200_000_usize {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let digits = (seed >> 14) % 10_u64.pow(1 + u32::try_from(round % 14).unwrap());
        let (whole, part) = (digits.to_string(), round % 15);
        let text = match whole.len().checked_sub(part) {
            Some(at) if part > 0 => format!("{}.{}", &whole[..at], &whole[at..]),
            _ => whole,
        };
        let text = if round % 3 == 0 { format!("-{text}") } else { text };
        let read = short_decimal(text.as_bytes()).unwrap();
        assert_eq!(read.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
    }
    for text in ["", "-", ".", "-.", "1.2.3", "1e5", "+1", "1 2", "nan", "1234567890.123456", "--1"] {
        assert_eq!(short_decimal(text.as_bytes()), None, "{text}");
    }
    assert_eq!(short_decimal(b"-0").map(f64::to_bits), Some((-0.0_f64).to_bits()));
}

#[test]
fn dates_in_every_order() {
    for (text, order, days) in [
        ("2024-01-31", DateOrder::Ymd, Some(19_753)),
        ("2024/1/31", DateOrder::Ymd, Some(19_753)),
        ("31.01.2024", DateOrder::Dmy, Some(19_753)),
        ("31/1/24", DateOrder::Dmy, Some(19_753)),
        ("01/31/2024", DateOrder::Mdy, Some(19_753)),
        ("31-Jan-2024", DateOrder::Named, Some(19_753)),
        ("January 31, 2024", DateOrder::Named, Some(19_753)),
        ("2023-02-29", DateOrder::Ymd, None),
        ("2024-01/31", DateOrder::Ymd, None),
        ("31.01.20245", DateOrder::Dmy, None),
        ("20240131", DateOrder::Ymd, None),
    ] {
        assert_eq!(date(text.as_bytes(), &ordered(order)), days, "{text}");
    }
}

#[test]
fn stamps_keep_their_zone_and_digits() {
    let of = |text: &str| {
        stamp(text.as_bytes(), &Notation::default()).map(|s| (s.seconds, s.nanos, s.digits, s.zoned))
    };
    assert_eq!(of("1970-01-02T00:00:01Z"), Some((86_401, 0, 0, true)));
    assert_eq!(of("1970-01-01 01:00:00.25+01:00"), Some((0, 250_000_000, 2, true)));
    assert_eq!(of("1970-01-01 01:30 PM"), Some((48_600, 0, 0, false)));
    assert_eq!(of("1970-01-01 00:00:00 UTC"), Some((0, 0, 0, true)));
    assert_eq!(of("1970-01-01 25:00:00"), None);
    assert_eq!(of("1970-01-01 10:00:00 Berlin"), None);
    assert_eq!(time(b"10:00:00.5"), Some(36_000_500_000));
    assert_eq!(time(b"10:00:00.123456789"), None);
}

#[test]
fn numbers_as_they_are_written() {
    let comma = Notation { decimal: b',', thousands: Some(b'.'), ..Notation::default() };
    assert_eq!(integer(b"-9223372036854775808", None), Some(i64::MIN));
    assert_eq!(integer(b"9223372036854775808", None), None);
    assert_eq!(huge(b"9223372036854775808"), Some(9_223_372_036_854_775_808));
    assert_eq!(float(b"1.234,5", &comma), Some(1234.5));
    assert_eq!(float(b"infinite", &Notation::default()), None);
    assert_eq!(float(b"-1e400", &Notation::default()), None);
    for (text, padded) in [
        ("007", true),
        ("-01", true),
        ("+1", true),
        ("+1.5", true),
        ("007.5", true),
        ("0", false),
        ("0.5", false),
        ("-0.5e-3", false),
        ("+", false),
        ("08:00", false),
    ] {
        assert_eq!(is_padded(text.as_bytes()), padded, "{text}");
    }
    assert!(is_grouped(b"1,234.5", b',', b'.') && !is_grouped(b"1,23", b',', b'.'));
    assert!(!is_grouped(b"1234", b',', b'.'));
}
