//! English names of months and weekdays, which PostgreSQL, DuckDB and MySQL give by default.

pub(super) const MONTHS: &[&str] = bowshot_api::words! {
    January February March April May June July August September October November December
};
/// Sunday first, as the functions number them from 0.
pub(super) const WEEKDAYS: &[&str] = bowshot_api::words! {
    Sunday Monday Tuesday Wednesday Thursday Friday Saturday
};

/// The name of a month from 1 on.
pub(super) fn month(number: u32) -> &'static str {
    number.checked_sub(1).and_then(|index| MONTHS.get(index as usize)).copied().unwrap_or_default()
}

/// The name of a weekday; Sunday is 0.
pub(super) fn weekday(number: u32) -> &'static str {
    WEEKDAYS.get(number as usize).copied().unwrap_or_default()
}

/// The first three letters of a name.
pub(super) fn short(name: &str) -> &str {
    name.get(..3).unwrap_or(name)
}

/// Which of the names a text begins with, in full or with three letters, and how long that is.
pub(super) fn find(names: &[&str], text: &str) -> Option<(usize, usize)> {
    let begins = |name: &str| text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let full = names.iter().position(|name| begins(name));
    if let Some(index) = full {
        return names.get(index).map(|name| (index, name.len()));
    }
    names.iter().position(|name| begins(short(name))).map(|index| (index, 3))
}
