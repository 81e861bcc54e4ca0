//! Slices: joins of the same tables with other constants in their filters, such as one for each day of a growing table. Where the join of
//! whole tables does not fit the cache, slices of it are cached, and the next one is predicted from the last two.

use crate::cache::implication::{Constant, constant};
use crate::cache::sequence::Pattern;
use crate::cache::shape::TableName;
use chrono::{Datelike, Days, NaiveDate};
use std::collections::BTreeSet;

/// Most stored joins and slices of each template.
const REMEMBERED: usize = 64;

/// Joins of a template that do not fit the cache, and requested slices of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slices {
    too_large: Vec<Slice>,
    /// The latest last.
    asked: Vec<(Slice, u64)>,
}

/// A join of a template: its tables, and its conditions on single tables.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slice {
    tables: Vec<TableName>,
    filters: BTreeSet<String>,
}

impl Slices {
    /// Records that a join does not fit. True if that is new.
    pub(crate) fn note_too_large(&mut self, tables: &[TableName], filters: &BTreeSet<String>) -> bool {
        if self.is_too_large(tables, filters) {
            return false;
        }
        if self.too_large.len() >= REMEMBERED {
            self.too_large.remove(0);
        }
        self.too_large.push(Slice { tables: tables.to_vec(), filters: filters.clone() });
        true
    }

    pub(crate) fn is_too_large(&self, tables: &[TableName], filters: &BTreeSet<String>) -> bool {
        self.too_large.iter().any(|part| part.is(tables, filters))
    }

    /// Records a requested slice. Without room, the least requested one is removed.
    pub(crate) fn note(&mut self, tables: &[TableName], filters: &BTreeSet<String>) {
        let known = self.asked.iter().position(|(part, _)| part.is(tables, filters));
        let (part, count) = match known.map(|place| self.asked.remove(place)) {
            Some(known) => known,
            None => (Slice { tables: tables.to_vec(), filters: filters.clone() }, 0),
        };
        if self.asked.len() >= REMEMBERED {
            let least = self.asked.iter().enumerate().min_by_key(|(_, (_, count))| *count);
            if let Some(least) = least.map(|(place, _)| place) {
                self.asked.remove(least);
            }
        }
        self.asked.push((part, count + 1));
    }

    pub(crate) fn count(&self, tables: &[TableName], filters: &BTreeSet<String>) -> u64 {
        self.asked.iter().find(|(part, _)| part.is(tables, filters)).map_or(0, |(_, count)| *count)
    }

    /// The filters of the last requested slice of these tables, and its number of requests.
    pub(crate) fn last(&self, tables: &[TableName]) -> Option<(&BTreeSet<String>, u64)> {
        self.of(tables).next_back().map(|(part, count)| (&part.filters, *count))
    }

    /// The filters of the slice that continues the last two of these tables.
    pub(crate) fn next(&self, tables: &[TableName]) -> Option<BTreeSet<String>> {
        let mut asked = self.of(tables).rev();
        let ((latest, _), (before, _)) = (asked.next()?, asked.next()?);
        next(&before.filters, &latest.filters).filter(|filters| !self.is_too_large(tables, filters))
    }

    fn of(&self, tables: &[TableName]) -> impl DoubleEndedIterator<Item = &(Slice, u64)> {
        self.asked.iter().filter(move |(part, _)| part.tables == tables)
    }
}

impl Slice {
    fn is(&self, tables: &[TableName], filters: &BTreeSet<String>) -> bool {
        self.tables == tables && self.filters == *filters
    }
}

/// The filters of the slice after `latest`: each constant moves by its difference to `before`. `None` if the
/// two differ in anything else, or if a constant moved back.
fn next(before: &BTreeSet<String>, latest: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let gone: Vec<Constant<'_>> =
        before.difference(latest).map(|text| constant(text)).collect::<Option<_>>()?;
    let come: Vec<Constant<'_>> =
        latest.difference(before).map(|text| constant(text)).collect::<Option<_>>()?;
    if come.is_empty() || gone.len() != come.len() {
        return None;
    }
    let mut next: BTreeSet<String> = latest.intersection(before).cloned().collect();
    for now in come {
        let then = gone.iter().find(|then| then.is_like(&now))?;
        let value = continued(&now.data_type, &then.value, &now.value)?;
        next.insert(now.with(&value));
    }
    Some(next)
}

/// The constant that follows the second one.
fn continued(data_type: &str, then: &str, now: &str) -> Option<String> {
    let is = |starts: &[&str]| starts.iter().any(|start| data_type.starts_with(start));
    if data_type == "Date32" {
        let (then, now) = (date(then)?, date(now)?);
        return Some(
            date_after(then, now)?.signed_duration_since(NaiveDate::default()).num_days().to_string(),
        );
    }
    if is(&["Timestamp", "Date64"]) {
        let (then, now) = (then.parse::<i64>().ok()?, now.parse::<i64>().ok()?);
        let day = units_of_day(data_type);
        if let (Some(then), Some(now)) = (midnight(then, day), midnight(now, day)) {
            let days = date_after(then, now)?.signed_duration_since(NaiveDate::default()).num_days();
            return days.checked_mul(day).map(|next| next.to_string());
        }
        let step = now.checked_sub(then).filter(|step| *step > 0)?;
        return now.checked_add(step).map(|next| next.to_string());
    }
    // Integers may be dates: 20210803.
    is(&["Int", "UInt", "Utf8"]).then(|| name_after(then, now)).flatten()
}

fn units_of_day(data_type: &str) -> i64 {
    let is = |names: [&str; 2]| names.iter().any(|name| data_type.contains(name));
    let of_second = if is(["Nano", "ns"]) {
        1_000_000_000
    } else if is(["Micro", "µs"]) {
        1_000_000
    } else if is(["Milli", "ms"]) || data_type == "Date64" {
        1_000
    } else {
        1
    };
    24 * 60 * 60 * of_second
}

/// The day that begins at a moment, if one does.
fn midnight(moment: i64, day: i64) -> Option<NaiveDate> {
    let days = u64::try_from(moment).ok()? / u64::try_from(day).ok()?;
    (moment % day == 0).then(|| NaiveDate::default().checked_add_days(Days::new(days))).flatten()
}

fn name_after(then: &str, now: &str) -> Option<String> {
    let pattern = Pattern::of(now);
    let steps = pattern.steps_from(&Pattern::of(then))?;
    let moved = steps.iter().filter(|step| **step != 0).count();
    (moved == 1 && steps.iter().all(|step| *step >= 0)).then(|| pattern.moved(&steps).name())
}

/// First days of months continue by month.
fn date_after(then: NaiveDate, now: NaiveDate) -> Option<NaiveDate> {
    let months = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
    if then.day() == 1 && now.day() == 1 && then < now {
        let next = months(now) + months(now) - months(then);
        let year = i32::try_from(next.div_euclid(12)).ok()?;
        return NaiveDate::from_ymd_opt(year, u32::try_from(next.rem_euclid(12)).ok()? + 1, 1);
    }
    let step = now.signed_duration_since(then).num_days();
    now.checked_add_days(Days::new(u64::try_from(step).ok().filter(|step| *step > 0)?))
}

fn date(days: &str) -> Option<NaiveDate> {
    let days = days.parse::<u64>().ok()?;
    NaiveDate::default().checked_add_days(Days::new(days))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(operator: &str, data_type: &str, value: &str) -> String {
        format!("(bin \"{operator}\" #0:\"day\" (lit \"{data_type}\" \"{value}\"))")
    }

    fn after(data_type: &str, then: &str, now: &str) -> Option<String> {
        let set =
            |value: &str| BTreeSet::from([compare("=", data_type, value), compare("=", "Boolean", "true")]);
        let next = next(&set(then), &set(now))?;
        assert!(next.contains(&compare("=", "Boolean", "true")), "what stays, stays");
        let moved: Vec<String> = next.difference(&set(now)).cloned().collect();
        moved.first().and_then(|text| constant(text)).map(|constant| constant.value)
    }

    #[test]
    fn constants_move_on_as_they_moved() {
        let days = |year, month, day| {
            let date = NaiveDate::from_ymd_opt(year, month, day).unwrap();
            date.signed_duration_since(NaiveDate::default()).num_days().to_string()
        };
        for (data_type, then, now, expected) in [
            ("Date32", days(2021, 8, 3), days(2021, 8, 4), days(2021, 8, 5)),
            ("Date32", days(2021, 11, 1), days(2021, 12, 1), days(2022, 1, 1)),
            ("Date32", days(2021, 8, 30), days(2021, 8, 31), days(2021, 9, 1)),
            ("Int64", "20210830".into(), "20210831".into(), "20210901".into()),
            ("Int32", "7".into(), "8".into(), "9".into()),
            ("Utf8", "2021-12-30".into(), "2021-12-31".into(), "2022-01-01".into()),
            ("Utf8View", "week 2021w51".into(), "week 2021w52".into(), "week 2022w01".into()),
            ("Timestamp(Second, None)", "86400".into(), "172800".into(), "259200".into()),
            ("Timestamp(Millisecond, None)", "1000".into(), "4000".into(), "7000".into()),
            ("Timestamp(s)", "2678400".into(), "5097600".into(), "7776000".into()),
        ] {
            assert_eq!(after(data_type, &then, &now), Some(expected), "{data_type} {then} {now}");
        }
    }

    #[test]
    fn what_does_not_move_on_has_no_next() {
        for (data_type, then, now) in [
            ("Int64", "8", "7"),
            ("Utf8", "Berlin", "Paris"),
            ("Float64", "1", "2"),
            ("Date32", "-3", "-2"),
            ("Timestamp(Second, None)", "9", "9223372036854775807"),
        ] {
            assert_eq!(after(data_type, then, now), None, "{data_type} {then} {now}");
        }
        let one = |text: String| BTreeSet::from([text]);
        let (day, other) = (compare("=", "Int64", "7"), compare("<", "Int64", "8"));
        assert_eq!(next(&one(day.clone()), &one(day.clone())), None);
        assert_eq!(next(&one(day.clone()), &one(other.clone())), None, "another operator");
        assert_eq!(next(&BTreeSet::new(), &one(day.clone())), None);
        assert_eq!(next(&one(day.clone()), &BTreeSet::from([day, other])), None);
    }

    #[test]
    fn what_is_asked_for_least_leaves() {
        let tables = [TableName { catalog: "c".into(), schema: "s".into(), table: "t".into() }];
        let filter = |value: usize| BTreeSet::from([compare("=", "Int64", &value.to_string())]);
        let mut slices = Slices::default();
        for value in 0..REMEMBERED {
            slices.note(&tables, &filter(value));
            slices.note(&tables, &filter(0));
        }
        slices.note(&tables, &filter(100));
        assert_eq!(slices.count(&tables, &filter(0)), REMEMBERED as u64 + 1);
        assert_eq!((slices.count(&tables, &filter(1)), slices.count(&tables, &filter(2))), (0, 1));
        slices.note(&tables, &filter(101));
        assert_eq!(slices.next(&tables), Some(filter(102)));
        assert!(
            slices.note_too_large(&tables, &filter(102)) && !slices.note_too_large(&tables, &filter(102))
        );
        assert_eq!(slices.next(&tables), None, "it was tried");
        assert_eq!(slices.last(&tables), Some((&filter(101), 1)));
    }

    #[test]
    fn both_ends_of_a_range_move() {
        let range =
            |from: &str, to: &str| BTreeSet::from([compare(">=", "Int64", from), compare("<", "Int64", to)]);
        assert_eq!(next(&range("10", "20"), &range("20", "30")), Some(range("30", "40")));
    }
}
