//! Whether the first record names the columns, and what the columns are called.

use super::sniff::Row;
use super::type_inference::{Guess, Habits};
use super::values::Notation;
use crate::read_options::ReadOptions;
use arrow::datatypes::DataType;
use std::collections::HashSet;

/// Part of the records that must have more values than the header has names for those to be columns.
const WIDE_SHARE: usize = 10;

pub(crate) struct Head {
    pub header: bool,
    /// Whether the records show it.
    pub certain: bool,
    pub why: &'static str,
}

pub(super) fn find(rows: &[Row], columns: usize, options: &ReadOptions) -> Head {
    if let Some(header) = options.header {
        return Head { header, certain: true, why: "given" };
    }
    let Some((first, rest)) = rows.split_first() else {
        return Head { header: true, certain: false, why: "no records" };
    };
    let (mut for_header, mut against) = (0, 0);
    let offset = usize::from(first.values.len() + 1 == columns);
    for place in 0..first.values.len() {
        let Some(name) = first.values.get(place).filter(|name| !name.trim_ascii().is_empty()) else {
            continue;
        };
        let kind = kind_of(rest.iter().filter_map(|row| row.values.get(place + offset)));
        let own = kind_of(std::iter::once(name));
        match (kind, own) {
            // Nothing below: names are texts.
            (Kind::Nothing, own) => against += usize::from(rest.is_empty() && own != Kind::Text),
            (Kind::Text, _) => {}
            (kind, own) if kind.holds(own) => against += 1,
            _ => for_header += 1,
        }
    }
    if for_header > 0 {
        return Head { header: true, certain: true, why: "the first line has other types" };
    }
    if against > 0 && !is_row_of_years(first) {
        return Head { header: false, certain: true, why: "the first line has the same types" };
    }
    match recurs(first, rest) {
        true => Head { header: false, certain: true, why: "values of the first line occur in others" },
        false => Head { header: true, certain: false, why: "all columns are text, so assumed" },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Text,
    Number,
    Truth,
    Moment,
}

impl Kind {
    fn holds(self, other: Self) -> bool {
        self == other
    }
}

fn kind_of<'a>(values: impl Iterator<Item = &'a Vec<u8>>) -> Kind {
    let mut guess = Guess::new(Notation::default());
    values.filter(|value| !value.trim_ascii().is_empty()).for_each(|value| guess.add(value, true));
    let guesses = [guess];
    let habits = Habits::of(&guesses, b';');
    match guesses[0].finish(&habits).data_type {
        DataType::Null => Kind::Nothing,
        DataType::Utf8 => Kind::Text,
        DataType::Boolean => Kind::Truth,
        data_type if data_type.is_temporal() => Kind::Moment,
        _ => Kind::Number,
    }
}

/// `country,2019,2020,2021` above numbers is a header.
fn is_row_of_years(first: &Row) -> bool {
    let number =
        |value: &Vec<u8>| std::str::from_utf8(value).ok().and_then(|text| text.trim().parse::<i32>().ok());
    let years: Vec<i32> = first.values.iter().filter_map(number).collect();
    let texts = first.values.len() - years.len();
    texts > 0
        && years.len() > 1
        && years.iter().all(|year| (1800..=2200).contains(year))
        && years.windows(2).all(|pair| pair[0] < pair[1])
}

/// Whether a value of the first record is one of its column's others, in another record.
fn recurs(first: &Row, rest: &[Row]) -> bool {
    rest.iter().filter(|row| row.values != first.values).any(|row| {
        let pairs = row.values.iter().zip(&first.values);
        pairs.filter(|(value, _)| !value.trim_ascii().is_empty()).any(|(value, name)| value == name)
    })
}

/// The names of the columns; empty where nothing names one.
pub(super) fn names(rows: &[Row], columns: usize, header: bool, options: &ReadOptions) -> Vec<String> {
    let (first, body) = match rows.split_first() {
        Some((first, body)) if header => (Some(first), body),
        _ => (None, rows),
    };
    let mut names: Vec<String> = match first {
        Some(first) => first.values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect(),
        None => Vec::new(),
    };
    let wide = width(body, columns.max(names.len()), options.null_padding);
    let filled_last =
        || body.iter().any(|row| row.values.get(names.len()).is_some_and(|value| !value.is_empty()));
    if header && names.len() + 1 == columns && wide == columns && names.len() > 1 && filled_last() {
        // R leaves the column of row names out of the header.
        names.insert(0, String::new());
    }
    // A delimiter that ends each line makes no column.
    while names.len() > 1
        && names.last().is_some_and(String::is_empty)
        && is_empty_below(body, names.len() - 1)
    {
        names.pop();
    }
    while names.len() < wide && !(header && is_empty_below(body, names.len())) {
        names.push(String::new());
    }
    for (place, name) in options.names.iter().enumerate() {
        match names.get_mut(place) {
            Some(known) => known.clone_from(name),
            None => names.push(name.clone()),
        }
    }
    names
}

fn is_empty_below(body: &[Row], place: usize) -> bool {
    !body.is_empty() && body.iter().all(|row| row.values.get(place).is_none_or(Vec::is_empty))
}

/// The columns that the records have, not counting what only a few of them have too much.
fn width(body: &[Row], columns: usize, all: bool) -> usize {
    let longer = body.iter().filter(|row| row.values.len() > columns).count();
    if longer == 0 || (!all && longer * WIDE_SHARE < body.len()) {
        return columns;
    }
    body.iter().map(|row| row.values.len()).max().unwrap_or(columns)
}

/// Makes names usable: no blanks around, none empty, none twice.
pub(crate) fn usable(names: &[String]) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut usable = Vec::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        let name = name.trim_start_matches('\u{feff}').trim();
        let base = if name.is_empty() { format!("column_{}", place + 1) } else { name.to_owned() };
        let (mut name, mut copy) = (base.clone(), 2);
        while !taken.insert(name.clone()) {
            name = format!("{base}_{copy}");
            copy += 1;
        }
        usable.push(name);
    }
    usable
}
