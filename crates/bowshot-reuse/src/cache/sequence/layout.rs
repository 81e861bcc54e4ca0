//! Formats of dates and times in names, as a table. A text is parsed and written by the same row, so it is written back unchanged.

use super::Reading;
use super::calendar::{Fields, Unit};
use super::months::{self, Case, Length, Named};
use Piece::{Day, Hour, Letter, Month, MonthName, Part, Separator, ShortYear, Year};
use std::fmt::Write as _;

/// What stands between the numbers of a time, the same one in all places.
const SEPARATORS: [char; 3] = ['_', '-', '.'];
/// Years of which days are dates, and the first one after them: `18800101` is rather a number.
const YEARS_OF_DAYS: (i64, i64) = (1970, 2200);
const YEARS: (i64, i64) = (1900, 2200);
/// Six digits are year and month if the year is one of these. Otherwise they are a short year, month and day if there is
/// such a day: `210812` is no month of 2108. Of `201112` nothing tells whether it is a month of 2011 or a day of 2020; it is
/// the month, which is usual. From 2021 on no day is a month.
const YEARS_OF_SIX_DIGITS: (i64, i64) = (1900, 2050);
/// The first short year of the last century.
const SHORT_YEARS: i64 = 50;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Layout {
    pub(super) unit: Unit,
    /// Stands for it in the text of a pattern. Layouts that one name may have in different readings have the same.
    pub(super) placeholder: &'static str,
    pieces: &'static [Piece],
    /// The first year and the one after the last.
    years: (i64, i64),
    /// In which order day and month are, where that is not certain.
    order: Option<Order>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Order {
    DayFirst,
    MonthFirst,
}

/// What a layout leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Style {
    separator: Option<char>,
    /// Of letters and names.
    case: Case,
    /// Of names.
    length: Length,
}

/// A time that a text begins with.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) layout: &'static Layout,
    pub(super) style: Style,
    pub(super) ordinal: i64,
    /// In bytes.
    pub(super) length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Piece {
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    Hour,
    /// Which half, quarter, week or day of the year, in so many digits.
    Part(usize),
    Separator,
    Letter(char),
}

/// The first one that fits is taken: longer ones come before shorter ones that they begin with.
static LAYOUTS: &[Layout] = &[
    of(Unit::Hour, "{hour}", &[Year, Month, Day, Hour]),
    of(Unit::Hour, "{hour-}", &[Year, Month, Day, Separator, Hour]),
    of(Unit::Hour, "{hour-}", &[Year, Month, Day, Letter('t'), Hour]),
    of(Unit::Hour, "{hour-}", &[Year, Separator, Month, Separator, Day, Separator, Hour]),
    of(Unit::Hour, "{hour-}", &[Year, Separator, Month, Separator, Day, Letter('t'), Hour]),
    of(Unit::Day, "{date}", &[Year, Month, Day]),
    of(Unit::Day, "{date-}", &[Year, Separator, Month, Separator, Day]),
    of(Unit::Day, "{ddmmyyyy}", &[Day, Month, Year]).ordered(Order::DayFirst),
    of(Unit::Day, "{ddmmyyyy}", &[Month, Day, Year]).ordered(Order::MonthFirst),
    of(Unit::Day, "{dd-mm-yyyy}", &[Day, Separator, Month, Separator, Year]).ordered(Order::DayFirst),
    of(Unit::Day, "{dd-mm-yyyy}", &[Month, Separator, Day, Separator, Year]).ordered(Order::MonthFirst),
    of(Unit::Day, "{dd-mon-yyyy}", &[Day, MonthName, Year]),
    of(Unit::Day, "{dd-mon-yyyy}", &[Day, Separator, MonthName, Separator, Year]),
    of(Unit::Day, "{mon-dd-yyyy}", &[MonthName, Separator, Day, Separator, Year]),
    of(Unit::Day, "{yyyy-mon-dd}", &[Year, MonthName, Day]),
    of(Unit::Day, "{yyyy-mon-dd}", &[Year, Separator, MonthName, Separator, Day]),
    of(Unit::Day, "{yyyyddd}", &[Year, Part(3)]),
    of(Unit::Day, "{yyyy-ddd}", &[Year, Separator, Part(3)]),
    of(Unit::Month, "{month}", &[Year, Month]).within(YEARS_OF_SIX_DIGITS),
    of(Unit::Day, "{yymmdd}", &[ShortYear, Month, Day]),
    of(Unit::Month, "{month}", &[Year, Month]),
    of(Unit::Month, "{month-}", &[Year, Separator, Month]),
    of(Unit::Month, "{mon-yyyy}", &[MonthName, Year]),
    of(Unit::Month, "{mon-yyyy}", &[MonthName, Separator, Year]),
    of(Unit::Month, "{yyyy-mon}", &[Year, MonthName]),
    of(Unit::Month, "{yyyy-mon}", &[Year, Separator, MonthName]),
    of(Unit::Week, "{week}", &[Year, Letter('w'), Part(2)]),
    of(Unit::Week, "{week}", &[Year, Separator, Letter('w'), Part(2)]),
    of(Unit::Quarter, "{quarter}", &[Year, Letter('q'), Part(1)]),
    of(Unit::Quarter, "{quarter}", &[Year, Separator, Letter('q'), Part(1)]),
    of(Unit::Half, "{half}", &[Year, Letter('h'), Part(1)]),
    of(Unit::Half, "{half}", &[Year, Separator, Letter('h'), Part(1)]),
    of(Unit::Year, "{year}", &[Year]),
];

const fn of(unit: Unit, placeholder: &'static str, pieces: &'static [Piece]) -> Layout {
    let years = if matches!(unit, Unit::Hour | Unit::Day) { YEARS_OF_DAYS } else { YEARS };
    Layout { unit, placeholder, pieces, years, order: None }
}

/// The time that a text begins with. Digits before the text, or after what is found, are none of its.
pub(super) fn read(text: &str, reading: Reading) -> Option<Found> {
    let is_other = |layout: &&Layout| layout.order.is_some_and(|order| order != reading.order);
    let usual = LAYOUTS.iter().filter(|layout| !is_other(layout));
    // A day above 12 is one whatever the order should be.
    usual.chain(LAYOUTS.iter().filter(is_other)).find_map(|layout| layout.read(text, reading))
}

impl Layout {
    const fn ordered(self, order: Order) -> Self {
        Self { order: Some(order), ..self }
    }

    const fn within(self, years: (i64, i64)) -> Self {
        Self { years, ..self }
    }

    fn read(&'static self, text: &str, reading: Reading) -> Option<Found> {
        let mut fields = Fields::default();
        let mut style = Style { separator: None, case: Case::Lower, length: Length::Short };
        let mut length = 0;
        for piece in self.pieces {
            length += piece.read(text.get(length..)?, &mut fields, &mut style, reading)?;
        }
        let (first, end) = self.years;
        let ordinal = self.unit.ordinal(fields).filter(|_| (first..end).contains(&fields.year))?;
        let ends = ends_at(text, length) && !self.takes_a_year_of_a_date(text, length);
        ends.then_some(Found { layout: self, style, ordinal, length })
    }

    /// Appends the time to a name.
    pub(super) fn write(&self, ordinal: i64, style: Style, name: &mut String) {
        let mut fields = self.unit.fields(ordinal);
        for piece in self.pieces {
            match *piece {
                Separator => name.extend(style.separator),
                Letter(letter) => name.push_str(&style.case.of(&letter.to_string())),
                MonthName => {
                    Named { month: fields.month, case: style.case, length: style.length }.write(name)
                }
                piece => {
                    let Some((number, digits)) = piece.number(&mut fields) else { continue };
                    let number = if piece == ShortYear { number.rem_euclid(100) } else { *number };
                    // Writing to a string cannot fail.
                    let _ = write!(name, "{number:0digits$}");
                }
            }
        }
    }

    /// Whether the year at its end begins a whole date, as in `grammar_2021_08_03`, which has no `mar_2021`.
    fn takes_a_year_of_a_date(&self, text: &str, length: usize) -> bool {
        let [.., Separator | MonthName, Year] = self.pieces else { return false };
        let year = length.checked_sub(4).and_then(|at| text.get(at..)).unwrap_or_default();
        let mut dates = LAYOUTS.iter().filter(|layout| {
            layout.pieces.first() == Some(&Year) && matches!(layout.unit, Unit::Hour | Unit::Day)
        });
        dates.any(|layout| layout.read(year, Reading::USUAL).is_some())
    }
}

impl Piece {
    /// Reads what the text begins with. Gives its length in bytes.
    fn read(self, text: &str, fields: &mut Fields, style: &mut Style, reading: Reading) -> Option<usize> {
        let first = text.chars().next()?;
        match self {
            Separator => {
                let fits =
                    SEPARATORS.contains(&first) && style.separator.is_none_or(|before| before == first);
                style.separator = Some(first);
                fits.then_some(1)
            }
            Letter(letter) => {
                style.case = if first == letter { Case::Lower } else { Case::Upper };
                first.eq_ignore_ascii_case(&letter).then_some(1)
            }
            MonthName => {
                let (named, bytes) = months::name_at(text, reading.may)?;
                (fields.month, style.case, style.length) = (named.month, named.case, named.length);
                Some(bytes)
            }
            _ => {
                let (number, digits) = self.number(fields)?;
                let written =
                    text.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                *number = written?.parse().ok()?;
                if self == ShortYear {
                    *number += if *number < SHORT_YEARS { 2000 } else { 1900 };
                }
                Some(digits)
            }
        }
    }

    /// The number that it stands for, and its digits.
    fn number(self, fields: &mut Fields) -> Option<(&mut i64, usize)> {
        match self {
            Year => Some((&mut fields.year, 4)),
            ShortYear => Some((&mut fields.year, 2)),
            Month => Some((&mut fields.month, 2)),
            Day => Some((&mut fields.day, 2)),
            Hour => Some((&mut fields.hour, 2)),
            Part(digits) => Some((&mut fields.part, digits)),
            MonthName | Separator | Letter(_) => None,
        }
    }
}

/// Whether neither a number nor a word goes on after so many bytes.
fn ends_at(text: &str, length: usize) -> bool {
    let last = text.get(..length).and_then(|text| text.chars().next_back());
    let next = text.get(length..).and_then(|text| text.chars().next());
    match (last, next) {
        (Some(last), Some(next)) if last.is_ascii_digit() => !next.is_ascii_digit(),
        (_, Some(next)) => !next.is_alphabetic(),
        (_, None) => true,
    }
}
