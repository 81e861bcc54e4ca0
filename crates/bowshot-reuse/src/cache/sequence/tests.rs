//! Names are put together again, continued and ordered; what is certain in no reading is as documented.

use super::*;

/// A name, the text of its pattern, and the name that follows.
fn follows(cases: &[(&str, &str, &str)]) {
    for (name, text, next) in cases {
        let pattern = Pattern::of(name);
        assert_eq!((pattern.text.as_str(), pattern.name().as_str()), (*text, *name));
        assert_eq!(pattern.moved(&[1]).name(), *next);
        let next = Pattern::of(next);
        assert_eq!(next.steps_from(&pattern), Some(vec![1]), "{name}");
        assert_eq!(pattern.steps_from(&next), Some(vec![-1]), "{name}");
        assert!(next.values > pattern.values, "{name}");
    }
}

fn texts(cases: &[(&str, &str)]) {
    for (name, text) in cases {
        let pattern = Pattern::of(name);
        assert_eq!((pattern.text.as_str(), pattern.name().as_str()), (*text, *name));
    }
}

#[test]
fn dates_are_continued() {
    follows(&[
        ("sales20210803", "sales{date}", "sales20210804"),
        ("sales20211231", "sales{date}", "sales20220101"),
        ("sales20240228", "sales{date}", "sales20240229"),
        ("sales20230228", "sales{date}", "sales20230301"),
        ("s_2021_08_31_x", "s_{date-}_x", "s_2021_09_01_x"),
        ("s2021-08-03", "s{date-}", "s2021-08-04"),
        ("s2021.08.03", "s{date-}", "s2021.08.04"),
        ("sales210812", "sales{yymmdd}", "sales210813"),
        ("sales211231", "sales{yymmdd}", "sales220101"),
        ("sales991231", "sales{yymmdd}", "sales000101"),
        ("sales240228", "sales{yymmdd}", "sales240229"),
        ("s_31082021", "s_{ddmmyyyy}", "s_01092021"),
        ("s_03082021", "s_{ddmmyyyy}", "s_04082021"),
        ("s_28022024", "s_{ddmmyyyy}", "s_29022024"),
        ("s03_08_2021", "s{dd-mm-yyyy}", "s04_08_2021"),
        ("s_31-12-2021_x", "s_{dd-mm-yyyy}_x", "s_01-01-2022_x"),
        ("s31.12.2021", "s{dd-mm-yyyy}", "s01.01.2022"),
        ("s2021_215", "s{yyyy-ddd}", "s2021_216"),
        ("s2021365", "s{yyyyddd}", "s2022001"),
        ("s2024365", "s{yyyyddd}", "s2024366"),
    ]);
}

#[test]
fn other_times_and_numbers_are_continued() {
    follows(&[
        ("load2021080323", "load{hour}", "load2021080400"),
        ("load20210803_23", "load{hour-}", "load20210804_00"),
        ("load20211231T23", "load{hour-}", "load20220101T00"),
        ("load2021-08-03t22", "load{hour-}", "load2021-08-03t23"),
        ("load_2021_08_31_23", "load_{hour-}", "load_2021_09_01_00"),
        ("m202112", "m{month}", "m202201"),
        ("m204912", "m{month}", "m205001"),
        ("m_2021_12", "m_{month-}", "m_2022_01"),
        ("w2020w53", "w{week}", "w2021w01"),
        ("w2021_W31", "w{week}", "w2021_W32"),
        ("w1950w10", "w{week}", "w1950w11"),
        ("q2021q4", "q{quarter}", "q2022q1"),
        ("q2021-Q1", "q{quarter}", "q2021-Q2"),
        ("h2021h1", "h{half}", "h2021h2"),
        ("h2021_H2", "h{half}", "h2022_H1"),
        ("y2021", "y{year}", "y2022"),
        ("part7", "part{n}", "part8"),
        ("part009", "part{n}", "part010"),
        ("part099", "part{n}", "part100"),
        ("größe9", "größe{n}", "größe10"),
    ]);
}

#[test]
fn months_with_names_are_continued() {
    follows(&[
        ("aug2021", "{mon-yyyy}", "sep2021"),
        ("salesDec2021", "sales{mon-yyyy}", "salesJan2022"),
        ("s_AUG_2021", "s_{mon-yyyy}", "s_SEP_2021"),
        ("s_august_2021_x", "s_{mon-yyyy}_x", "s_september_2021_x"),
        ("APRIL-2021", "{mon-yyyy}", "MAY-2021"),
        ("s2021dec", "s{yyyy-mon}", "s2022jan"),
        ("2021_December", "{yyyy-mon}", "2022_January"),
        ("s31aug2021", "s{dd-mon-yyyy}", "s01sep2021"),
        ("s_31-December-2021", "s_{dd-mon-yyyy}", "s_01-January-2022"),
        ("s2021aug31", "s{yyyy-mon-dd}", "s2021sep01"),
        ("s2024_feb_28", "s{yyyy-mon-dd}", "s2024_feb_29"),
        ("s_aug_31_2021", "s_{mon-dd-yyyy}", "s_sep_01_2021"),
        ("größe_may_2021", "größe_{mon-yyyy}", "größe_jun_2021"),
    ]);
}

#[test]
fn what_is_no_date_is_a_number() {
    texts(&[
        ("t20211399", "t{n}"),
        ("t20210229", "t{n}"),
        ("t31022021", "t{n}"),
        ("t99", "t{n}"),
        ("t202113", "t{n}"),
        ("t2021367", "t{n}"),
        ("t2021000", "t{n}"),
        ("t_2021_366", "t_{year}_{n}"),
        ("t20210803_24", "t{date}_{n}"),
        ("t20210803_2359", "t{date}_{n}"),
        ("t_03_08-2021", "t_{n}_{n}-{year}"),
        ("t_3_8_2021", "t_{n}_{n}_{year}"),
        ("t_2021_31", "t_{year}_{n}"),
        ("t2021h3", "t{year}h{n}"),
        ("t3aug2021", "t{n}{mon-yyyy}"),
        ("t12345678901234567890", "t12345678901234567890"),
        ("products", "products"),
    ]);
}

#[test]
fn names_that_can_be_read_in_two_ways() {
    texts(&[
        // Month 12 of 2011, and not 12 November 2020.
        ("t201112", "t{month}"),
        // 13 November 2020, since there is no such month.
        ("t201113", "t{yymmdd}"),
        // 12 August 2021, and not month 12 of 2108.
        ("t210812", "t{yymmdd}"),
        // There is no 50th month of 2020.
        ("t205012", "t{month}"),
        ("t211312", "t{month}"),
        ("t_01_03_08_2021", "t_{n}_{dd-mm-yyyy}"),
        // A whole date, before which there is something else.
        ("t_10_11_2021_08_03", "t_{n}_{n}_{date-}"),
        ("grammar_2021_08_03", "grammar_{date-}"),
        ("grammar2021_08_03_23", "grammar{hour-}"),
        ("mar_2021_12", "{mon-yyyy}_{n}"),
        ("t2021marketing", "t{year}marketing"),
        ("t2021märz", "t{year}märz"),
        ("t_aUg_2021", "t_aUg_{year}"),
        ("mayor2021", "mayor{year}"),
    ]);
    let day_first = |name, then| Pattern::of(name).steps_from(&Pattern::of(then));
    assert_eq!(day_first("t04082021", "t03082021"), Some(vec![1]));
    assert_eq!(day_first("t08042021", "t08032021"), Some(vec![31]), "8 March and 8 April");
    assert_eq!(day_first("t08142021", "t08132021"), Some(vec![1]), "months have no 13th one before the day");
}

#[test]
fn the_text_is_the_same_in_every_reading_and_the_name_too() {
    for name in
        ["a03082021", "a_08_03_2021", "a31122021", "may_2021", "May2021", "d08-03-2021_may_2021_7", "x"]
    {
        let usual = Pattern::of(name);
        for reading in Reading::ALL {
            let pattern = Pattern::read(name, reading);
            assert_eq!((&pattern.text, pattern.name().as_str()), (&usual.text, name), "{reading:?}");
        }
    }
    let [_, full, month_first, _] = Reading::ALL;
    assert_eq!(Pattern::read("a_08_31_2021", month_first).moved(&[1]).name(), "a_09_01_2021");
    assert_eq!(Pattern::read("a08032021", month_first).moved(&[29]).name(), "a09012021");
    assert_eq!(Pattern::read("a31082021", month_first).moved(&[1]).name(), "a01092021");
    assert_eq!(Pattern::read("may2021", full).moved(&[1]).name(), "june2021");
}

#[test]
fn only_times_count_in_the_name_of_a_schema() {
    for (name, text) in [
        ("d20210803", "d{date}"),
        ("d_2021_08_03_v2", "d_{date-}_v2"),
        ("aug2021", "{mon-yyyy}"),
        ("tenant7", "tenant7"),
        ("main", "main"),
    ] {
        let pattern = Pattern::of_schema(name);
        assert_eq!((pattern.text.as_str(), pattern.name().as_str()), (text, name));
    }
}

#[test]
fn every_name_is_put_together_again() {
    let odd = [
        "",
        "0",
        "00",
        "000000",
        "00000000",
        "0000000000",
        "999999999999999",
        "9999999999999999",
        "000000000000001",
        "٣٤٢٠٢١",
        "２０２１０８０３",
        "größe２０２１_08_03ß",
        "2021é",
        "2021_é",
        "2021_08é03",
        "2021-08_03",
        "augé2021",
        "éaug2021é",
        "août2021",
        "aug2021🦀03",
        "🦀20210803T23🦀",
        "03é08é2021",
        "{date}20210803{n}",
        "+1-2021.08.",
        "2021_+8_03",
        "+12021-+8",
        "1900w01",
        "1900W53",
        "2199_w52",
        "19000101",
        "21991231",
        "2199123123",
        "1900q1",
        "0001",
        "\0\u{1}2021\0",
        "MAY2021may2021May2021",
        "2021may2021",
        "JANUARY_31_2021_feb",
        "q2021Q4h2021H2w2021W01",
        "2021-08-03T23:59:59",
        "........2021........",
        "____",
    ];
    let dates = (1_u64..100_000_000).step_by(7_919).map(|number| format!("{number:08}"));
    let months = (0..1_000_000).step_by(61).map(|number| format!("t{number:06}x"));
    let days_of_years = (0..10_000_000).step_by(997).map(|number| format!("t{number:07}"));
    let parts =
        (0..10_000).step_by(7).map(|number| format!("{number:04}_{:02}_{:02}", number % 14, number % 33));
    let ends =
        (0..10_000).step_by(7).map(|number| format!("{:02}-{:02}-{number:04}", number % 33, number % 14));
    let all = odd.into_iter().map(str::to_owned).chain(dates).chain(months).chain(days_of_years);
    for name in all.chain(parts).chain(ends) {
        let pattern = Pattern::of(&name);
        assert_eq!(pattern.name(), name);
        assert_eq!(pattern.moved(&vec![0; pattern.values.len()]), pattern);
        assert_eq!(Pattern::of_schema(&name).name(), name);
    }
}

#[test]
fn days_in_a_row_are_one_apart_in_every_form() {
    for first in [
        "20191231",
        "31122019",
        "2019_12_31",
        "31-12-2019",
        "2019365",
        "2019_365",
        "31dec2019",
        "2019Dec31",
        "210101",
    ] {
        let first = Pattern::of(first);
        for step in 0..500 {
            let (day, next) = (first.moved(&[step]), first.moved(&[step + 1]));
            let (day, next) = (Pattern::of(&day.name()), Pattern::of(&next.name()));
            assert_eq!(next.steps_from(&day), Some(vec![1]), "{} {}", day.name(), next.name());
            assert!(day < next, "{} {}", day.name(), next.name());
        }
    }
}

#[test]
fn far_steps_do_not_fail() {
    for name in
        ["20210803", "2021080323", "202108", "2021w31", "2021q3", "2021h1", "2021", "7", "aug2021", "2021215"]
    {
        for step in [i64::MAX, i64::MIN, 1 << 40, -1_000_000] {
            assert!(!Pattern::of(name).moved(&[step]).name().is_empty());
        }
    }
}
