//! Predicts the next join of a template, from the tables that it was seen with and a table that has appeared.

use crate::cache::sequence::{Pattern, Reading, Value};
use crate::cache::shape::TableName;

/// By which factor another reading must be nearer to be chosen.
const MUCH: u64 = 4;

/// The tables of the next join of a template, now that `appeared` is there. `seen` are the tables of its joins, the latest
/// last, all with tables of the same patterns in the same order.
///
/// What moved between the last two joins moves on by as much as the table that appeared is ahead; what stood still stays.
/// After a single join, tables that count the same from the same value, or are of the same sequence, move together. A day
/// may be in the name of the schema, too: then tables of that day's schema move to the next one.
///
/// Of several readings of the names the one is right in which `appeared` is the nearest: `08032021`, `08042021` and
/// `08052021` are days in a row and not days of three months. A wrong one costs work and never gives wrong rows.
pub(crate) fn next(seen: &[Vec<TableName>], appeared: &TableName) -> Option<Vec<TableName>> {
    // Mostly it belongs to no sequence, in any reading.
    let new = Counted::read(appeared, Reading::USUAL);
    if !seen.last()?.iter().any(|name| Counted::read(name, Reading::USUAL).is_like(&new)) {
        return None;
    }
    let readings = Reading::ALL.into_iter().filter_map(|reading| continued(seen, appeared, reading));
    readings.min_by_key(|(step, _)| *step).map(|(_, tables)| tables)
}

/// Whether tables come later in their sequence than those of an earlier join of the same template: none is earlier, and one is later,
/// in the likely reading.
pub(crate) fn is_later(now: &[TableName], earlier: &[TableName]) -> bool {
    let steps = |reading: Reading| -> Option<Vec<i64>> {
        let pairs = now.iter().zip(earlier);
        let steps =
            pairs.map(|(now, then)| Counted::read(now, reading).steps_from(&Counted::read(then, reading)));
        Some(steps.collect::<Option<Vec<_>>>()?.concat())
    };
    let reading = likely(|reading| steps(reading).map_or(u64::MAX, |steps| distance(&steps)));
    now.len() == earlier.len()
        && steps(reading)
            .is_some_and(|steps| steps.iter().all(|step| *step >= 0) && steps.iter().any(|step| *step > 0))
}

/// Sorts joins of one template by sequence, in the likely reading.
pub(crate) fn sort(joins: &mut [Vec<TableName>]) {
    let read = |tables: &[TableName], reading: Reading| -> Vec<Value> {
        let counted = tables.iter().map(|name| Counted::read(name, reading));
        counted.flat_map(|name| name.values().copied().collect::<Vec<_>>()).collect()
    };
    let spread = |reading: Reading| {
        let mut all: Vec<Vec<Value>> = joins.iter().map(|tables| read(tables, reading)).collect();
        all.sort();
        let pairs = all.iter().zip(all.iter().skip(1));
        let steps = pairs.flat_map(|(one, next)| {
            one.iter().zip(next).map(|(one, next)| next.ordinal.saturating_sub(one.ordinal))
        });
        distance(&steps.collect::<Vec<_>>())
    };
    let reading = likely(spread);
    joins.sort_by_cached_key(|tables| read(tables, reading));
}

/// The reading in which names are nearest, if that is much nearer than in the usual one: the fifth of January and the first
/// of June are nearer when turned round, but not by much.
fn likely(distance: impl Fn(Reading) -> u64) -> Reading {
    let nearest = Reading::ALL.into_iter().min_by_key(|reading| distance(*reading));
    let clearly = nearest.filter(|it| distance(*it).saturating_mul(MUCH) <= distance(Reading::USUAL));
    clearly.unwrap_or(Reading::USUAL)
}

fn distance(steps: &[i64]) -> u64 {
    steps.iter().fold(0, |sum, step| sum.saturating_add(step.unsigned_abs()))
}

/// A parsed name of a table.
struct Counted<'a> {
    name: &'a TableName,
    schema: Pattern,
    table: Pattern,
}

/// How a value of the table that has appeared moves.
struct Move {
    from: Value,
    /// By how much it moved from the join before to that one, if there was one.
    past: Option<i64>,
    step: i64,
}

/// The next join in one reading of all names, and how far ahead it is.
fn continued(
    seen: &[Vec<TableName>],
    appeared: &TableName,
    reading: Reading,
) -> Option<(i64, Vec<TableName>)> {
    let mut joins: Vec<Vec<Counted<'_>>> = Vec::with_capacity(seen.len());
    for names in seen {
        joins.push(names.iter().map(|name| Counted::read(name, reading)).collect());
    }
    // The order in which they come is that of the usual reading, and of tables only.
    joins.sort_by_cached_key(|tables| {
        tables.iter().map(|table| table.values().copied().collect()).collect::<Vec<Vec<_>>>()
    });
    let (latest, earlier) = joins.split_last()?;
    let before = |place: usize| earlier.last().and_then(|tables| tables.get(place));
    let new = Counted::read(appeared, reading);
    // The furthest one of the sequence: a join with the day before has two.
    let alike = latest.iter().enumerate().filter(|(_, table)| table.is_like(&new));
    let (leader, table) = alike.max_by(|one, other| one.1.values().cmp(other.1.values()))?;
    let moves = moves(table, before(leader), &new)?;
    let ahead = moves.iter().map(|it| it.step).find(|step| *step > 0)?;
    let tables = latest.iter().enumerate().map(|(place, other)| {
        let leads = place == leader || before(place).is_none() && other.is_like(table);
        let steps = if leads {
            moves.iter().map(|it| it.step).collect()
        } else {
            steps(other, before(place), &moves)?
        };
        other.moved(&steps)
    });
    let tables: Vec<TableName> = tables.collect::<Option<_>>()?;
    // Written in another way, it is not one of the next join.
    (tables.get(leader) == Some(appeared)).then_some((ahead, tables))
}

/// How the values of the table that has appeared move. `None` if there is no next join to tell from that: nothing moves, or
/// something moves back, or a number moves beside anything else. A year and a date may move together.
fn moves(table: &Counted<'_>, before: Option<&Counted<'_>>, new: &Counted<'_>) -> Option<Vec<Move>> {
    let steps = new.steps_from(table)?;
    let past = match before {
        Some(before) => table.steps_from(before)?.into_iter().map(Some).collect(),
        None => vec![None; steps.len()],
    };
    let values = table.values().zip(past).zip(steps);
    let moves: Vec<Move> = values.map(|((from, past), step)| Move { from: *from, past, step }).collect();
    let moved = || moves.iter().filter(|it| it.step != 0);
    let disagree =
        |one: &Move, other: &Move| one.from.form.counts_as(other.from.form) && one.step != other.step;
    let alone = moved().count() == 1;
    let fit = moved().all(|it| {
        it.step > 0 && (alone || !it.from.form.is_number() && !moved().any(|other| disagree(it, other)))
    });
    fit.then_some(moves)
}

/// The steps of another table of the join. `None` if it does not move with these.
fn steps(table: &Counted<'_>, before: Option<&Counted<'_>>, moves: &[Move]) -> Option<Vec<i64>> {
    let Some(before) = before else {
        return Some(table.values().map(|value| tied(value, None, moves).unwrap_or(0)).collect());
    };
    let past = table.steps_from(before)?;
    let steps = table.values().zip(past).map(|(value, past)| {
        let along = || moves.iter().find(|it| it.step > 0 && it.from.form.counts_as(value.form));
        match past {
            // Two numbers that stood still have nothing to do with each other; two years have.
            0 if value.form.is_number() => Some(0),
            0 => Some(tied(value, Some(past), moves).unwrap_or(0)),
            // Only values that count the same can move by the same step.
            _ => tied(value, Some(past), moves).or_else(|| along().map(|it| it.step)),
        }
    });
    steps.collect()
}

/// The step of what was the same and moved the same until now.
fn tied(value: &Value, past: Option<i64>, moves: &[Move]) -> Option<i64> {
    let same = |it: &&Move| {
        it.from.form.counts_as(value.form) && it.from.ordinal == value.ordinal && it.past == past
    };
    moves.iter().filter(same).map(|it| it.step).max()
}

impl<'a> Counted<'a> {
    fn read(name: &'a TableName, reading: Reading) -> Self {
        let schema = Pattern::read_schema(&name.schema, reading);
        Self { name, schema, table: Pattern::read(&name.table, reading) }
    }

    /// Whether both are of one sequence.
    fn is_like(&self, other: &Self) -> bool {
        self.name.catalog == other.name.catalog
            && self.schema.text == other.schema.text
            && self.table.text == other.table.text
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.schema.values.iter().chain(&self.table.values)
    }

    fn steps_from(&self, earlier: &Self) -> Option<Vec<i64>> {
        let mut steps = self.schema.steps_from(&earlier.schema)?;
        steps.extend(self.table.steps_from(&earlier.table)?);
        Some(steps)
    }

    fn moved(&self, steps: &[i64]) -> Option<TableName> {
        let (schema, table) = steps.split_at_checked(self.schema.values.len())?;
        Some(TableName {
            catalog: self.name.catalog.clone(),
            schema: self.schema.moved(schema).name(),
            table: self.table.moved(table).name(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tables: &[&str]) -> Vec<TableName> {
        tables.iter().map(|table| name(table)).collect()
    }

    /// `schema/table`, or a table of `main`.
    fn name(table: &str) -> TableName {
        let (schema, table) = table.split_once('/').unwrap_or(("main", table));
        TableName { catalog: "bowshot".into(), schema: schema.into(), table: table.into() }
    }

    #[test]
    fn the_latest_is_that_of_the_nearest_reading() {
        let day = |name: &str| names(&[&format!("sales{name}"), "products"]);
        for [then, now] in [["08122021", "08132021"], ["12082021", "13082021"], ["08022021", "08032021"]] {
            assert!(is_later(&day(now), &day(then)), "{now}");
            assert!(!is_later(&day(then), &day(now)) && !is_later(&day(now), &day(now)), "{now}");
            let mut joins = [day(now), day(then)];
            sort(&mut joins);
            assert_eq!(joins[1], day(now));
        }
        // What was seen before decides: the 12th of August is between the 11th and the 13th.
        let mut joins = ["08122021", "08132021", "08112021"].map(day);
        sort(&mut joins);
        assert_eq!(joins, ["08112021", "08122021", "08132021"].map(day));
        assert!(is_later(&day("01062021"), &day("05012021")), "days come first where nothing else is likely");
        assert!(!is_later(&names(&["a2", "b1"]), &names(&["a1", "b2"])), "one is behind");
        assert!(!is_later(&names(&["a2"]), &names(&["b1"])) && !is_later(&names(&["a2"]), &[]));
    }

    fn next_of(seen: &[&[&str]], appeared: &str) -> Option<Vec<String>> {
        let seen: Vec<Vec<TableName>> = seen.iter().map(|tables| names(tables)).collect();
        let written = |name: TableName| match name.schema.as_str() {
            "main" => name.table,
            schema => format!("{schema}/{}", name.table),
        };
        Some(next(&seen, &name(appeared))?.into_iter().map(written).collect())
    }

    #[test]
    fn tables_of_one_day_advance_together_and_others_stay() {
        let days: &[&[&str]] = &[
            &["products", "sales20210803", "stores20210803"],
            &["products", "sales20210804", "stores20210804"],
        ];
        let expected = Some(vec!["products".into(), "sales20210805".into(), "stores20210805".into()]);
        assert_eq!(next_of(days, "sales20210805"), expected);
        assert_eq!(next_of(days, "stores20210805"), expected);
        assert_eq!(next_of(&days[..1], "sales20210805"), expected, "the weekend is left out");
        assert_eq!(next_of(days, "sales20210802"), None, "what is past is no forecast");
        assert_eq!(next_of(days, "products2"), None);
    }

    #[test]
    fn a_join_with_the_day_before_keeps_its_distance() {
        let days: &[&[&str]] = &[&["s20210802", "s20210803"], &["s20210803", "s20210804"]];
        assert_eq!(next_of(days, "s20210805"), Some(vec!["s20210804".into(), "s20210805".into()]));
        assert_eq!(next_of(&days[..1], "s20210804"), Some(vec!["s20210803".into(), "s20210804".into()]));
    }

    #[test]
    fn a_number_that_stood_still_stays() {
        let seen: &[&[&str]] = &[&["dim2", "fact7"], &["dim2", "fact8"]];
        assert_eq!(next_of(seen, "fact9"), Some(vec!["dim2".into(), "fact9".into()]));
        assert_eq!(next_of(&seen[..1], "fact8"), Some(vec!["dim2".into(), "fact8".into()]));
    }

    #[test]
    fn months_and_weeks_cross_years() {
        assert_eq!(
            next_of(&[&["a202112", "b202112"]], "a202201"),
            Some(vec!["a202201".into(), "b202201".into()])
        );
        assert_eq!(next_of(&[&["a2020w53"]], "a2021w01"), Some(vec!["a2021w01".into()]));
    }

    /// Each line is a sequence of joins; the last one follows from those before it and its first table.
    fn each_follows(joins: &[&[&[&str]]]) {
        for joins in joins {
            let [seen @ .., expected] = joins else { panic!("no joins") };
            let expected_names: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(next_of(seen, expected[0]), Some(expected_names), "{joins:?}");
        }
    }

    #[test]
    fn the_sequence_tells_whether_the_day_is_first() {
        each_follows(&[
            &[&["a03082021", "b03082021"], &["a04082021", "b04082021"], &["a05082021", "b05082021"]],
            &[&["a08032021", "b08032021"], &["a08042021", "b08042021"], &["a08052021", "b08052021"]],
            &[&["a08122021", "b08122021"], &["a08132021", "b08132021"]],
            &[&["a08302021", "b08302021"], &["a08312021", "b08312021"], &["a09012021", "b09012021"]],
            &[&["a09302021", "b09302021"], &["a10012021", "b10012021"], &["a10022021", "b10022021"]],
            &[&["a_12_31_2021", "b_12_31_2021"], &["a_01_01_2022", "b_01_01_2022"]],
            &[&["a_31_12_2021", "a_30_12_2021"], &["a_01_01_2022", "a_31_12_2021"]],
            // First days of months, which are days in a row as well if the month is first: both give the same names.
            &[&["a01082021", "b01082021"], &["a01092021", "b01092021"], &["a01102021", "b01102021"]],
        ]);
    }

    #[test]
    fn the_order_of_what_was_seen_is_that_of_the_reading() {
        // With the day first, the 12th of August would be in December.
        let seen: &[&[&str]] = &[&["a08132021", "b08132021"], &["a08122021", "b08122021"]];
        assert_eq!(next_of(seen, "a08142021"), Some(vec!["a08142021".into(), "b08142021".into()]));
    }

    #[test]
    fn the_month_after_may_is_as_long_as_that_of_the_table_that_appeared() {
        each_follows(&[
            &[&["a_may_2021", "b_may_2021"], &["a_jun_2021", "b_jun_2021"]],
            &[&["a_may_2021", "b_may_2021"], &["a_june_2021", "b_june_2021"]],
            &[&["a_April_2021", "b_April_2021"], &["a_May_2021", "b_May_2021"]],
            &[
                &["a_April_2021", "b_April_2021"],
                &["a_May_2021", "b_May_2021"],
                &["a_June_2021", "b_June_2021"],
            ],
        ]);
    }

    #[test]
    fn times_of_one_kind_move_together_however_they_are_written() {
        each_follows(&[
            &[&["a20210831", "b_31_08_2021", "c"], &["a20210901", "b_01_09_2021", "c"]],
            &[&["a210831", "b2021243", "c31aug2021"], &["a210901", "b2021244", "c01sep2021"]],
            &[&["a20210831_23", "b2021083123"], &["a20210901_00", "b2021090100"]],
            &[&["a2021h2", "b2021_h2"], &["a2022h1", "b2022_h1"]],
        ]);
        assert_eq!(next_of(&[&["a20210831", "b"]], "a20210901_00"), None, "another form");
        assert_eq!(next_of(&[&["part9", "b"]], "part010"), None, "written in another way");
    }

    #[test]
    fn the_day_may_be_in_the_name_of_the_schema() {
        each_follows(&[
            &[&["d20210803/sales", "d20210803/stores"], &["d20210804/sales", "d20210804/stores"]],
            &[
                &["d20210830/sales", "d20210830/stores", "products"],
                &["d20210831/sales", "d20210831/stores", "products"],
                &["d20210901/sales", "d20210901/stores", "products"],
            ],
            &[
                &["d20210803/s20210803", "d20210803/t20210803"],
                &["d20210804/s20210804", "d20210804/t20210804"],
            ],
            &[&["d20210803/part7", "d20210803/other7"], &["d20210803/part8", "d20210803/other8"]],
            &[
                &["d_31_aug_2021/sales", "d_31_aug_2021/stores"],
                &["d_01_sep_2021/sales", "d_01_sep_2021/stores"],
            ],
        ]);
        each_follows(&[
            &[&["y2021/s20211231", "y2021/t20211231"], &["y2022/s20220101", "y2022/t20220101"]],
            &[
                &["y2021/s20211230", "y2021/t20211230"],
                &["y2021/s20211231", "y2021/t20211231"],
                &["y2022/s20220101", "y2022/t20220101"],
                &["y2022/s20220102", "y2022/t20220102"],
            ],
            &[
                &["y2021/s20211230", "y2021/t20211230"],
                &["y2021/s20211231", "y2021/t20211231"],
                &["y2022/s20220101", "y2022/t20220101"],
            ],
        ]);
        assert_eq!(next_of(&[&["d20210803/sales"]], "d20210804/stores"), None);
        assert_eq!(next_of(&[&["tenant7/sales", "tenant7/stores"]], "tenant8/sales"), None, "somebody else");
    }

    #[test]
    fn times_that_move_apart_and_numbers_beside_others_tell_nothing() {
        assert_eq!(next_of(&[&["a_20210803_20210803"]], "a_20210804_20210805"), None);
        assert_eq!(next_of(&[&["a20210803_p1"]], "a20210804_p2"), None);
        assert_eq!(next_of(&[&["d20210803/part7"]], "d20210804/part8"), None);
        assert_eq!(next_of(&[&["a20210803"]], "a20210803"), None);
        assert_eq!(next_of(&[], "a20210803"), None);
    }
}
