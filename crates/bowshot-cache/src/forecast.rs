//! Which join comes next: from the tables that a template was seen with and a table that has appeared.

use crate::sequence::Pattern;
use crate::shape::TableName;

/// The tables of the next join of a template, now that `appeared` is there. `seen` are the tables of its joins, the latest
/// last, all with tables of the same patterns in the same order.
///
/// What moved between the last two joins moves on by as much as the table that appeared is ahead; what stood still stays.
/// After a single join, tables that count the same from the same value, or are of the same sequence, move together.
pub fn next(seen: &[Vec<TableName>], appeared: &TableName) -> Option<Vec<TableName>> {
    let latest = seen.last()?;
    let new = Pattern::of(&appeared.table);
    let patterns: Vec<Pattern> = latest.iter().map(|name| Pattern::of(&name.table)).collect();
    let is_of = |name: &TableName, pattern: &Pattern| {
        name.catalog == appeared.catalog && name.schema == appeared.schema && pattern.text == new.text
    };
    // The furthest one of the sequence: a join with the day before has two.
    let places = latest.iter().zip(&patterns).enumerate().filter(|(_, (name, pattern))| is_of(name, pattern));
    let (leader, (_, pattern)) = places.max_by(|one, other| one.1.1.values.cmp(&other.1.1.values))?;
    let steps = new.steps_from(pattern)?;
    let mut moved = steps.iter().enumerate().filter(|(_, step)| **step != 0);
    let (component, step) = moved.next().filter(|(_, step)| **step > 0)?;
    if moved.next().is_some() {
        return None;
    }
    let (form, value) = pattern.values.get(component).map(|value| (value.form, value.ordinal))?;
    let before = seen.len().checked_sub(2).and_then(|place| seen.get(place));
    let names = latest.iter().zip(&patterns).enumerate().map(|(place, (name, pattern))| {
        let steps: Vec<i64> = match before.and_then(|before| before.get(place)) {
            _ if place == leader => steps.clone(),
            Some(before) => {
                let past = pattern.steps_from(&Pattern::of(&before.table))?;
                past.iter().map(|past| if *past == 0 { 0 } else { *step }).collect()
            }
            None => {
                let along = |at: &crate::sequence::Value| {
                    at.form.counts_as(form) && (at.ordinal == value || pattern.text == new.text)
                };
                pattern.values.iter().map(|at| if along(at) { *step } else { 0 }).collect()
            }
        };
        // Only values that count the same can move by the same step.
        let fits = pattern.values.iter().zip(&steps).all(|(at, step)| *step == 0 || at.form.counts_as(form));
        fits.then(|| TableName { table: pattern.moved(&steps).name(), ..name.clone() })
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tables: &[&str]) -> Vec<TableName> {
        tables.iter().map(|table| name(table)).collect()
    }

    fn name(table: &str) -> TableName {
        TableName { catalog: "bowshot".into(), schema: "main".into(), table: table.into() }
    }

    fn next_of(seen: &[&[&str]], appeared: &str) -> Option<Vec<String>> {
        let seen: Vec<Vec<TableName>> = seen.iter().map(|tables| names(tables)).collect();
        Some(next(&seen, &name(appeared))?.into_iter().map(|name| name.table).collect())
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
}
