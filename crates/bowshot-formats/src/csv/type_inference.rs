//! The type of each column, from its first values: the narrowest that holds them all as they are.
//!
//! Codes with leading zeros stay text, and whole numbers keep their digits. Words for nothing (`NA`, `NULL`, …) are nulls in columns whose other values have a
//! type; in columns of text they are text.

use super::values::{self, DateOrder, Notation};
use crate::digits::{self, Digits};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};

/// Words that stand for no value in columns that are no text.
const NULL_WORDS: [&[u8]; 17] = [
    b"NA", b"N/A", b"n/a", b"na", b"NULL", b"null", b"Null", b"None", b"none", b"\\N", b"-", b"--", b"?",
    b"#N/A", b"<NA>", b"NaT", b"(null)",
];

pub(crate) fn is_null_word(text: &[u8]) -> bool {
    // Most values are numbers, and need not be compared with each of the words.
    let begins = match text {
        [b'-', second, ..] => *second == b'-',
        [first, ..] => matches!(first, b'N' | b'n' | b'\\' | b'-' | b'?' | b'#' | b'<' | b'('),
        [] => false,
    };
    begins && text.len() <= 6 && NULL_WORDS.contains(&text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Candidate {
    Boolean,
    Integer,
    Huge,
    Float,
    /// `2,5`
    Comma,
    /// `1,234.5`
    CommaGroups,
    /// `1.234,5`
    PointGroups,
    Date(DateOrder),
    Time,
    Stamp(DateOrder),
}

#[derive(Debug, Clone)]
pub(crate) struct Guess {
    alive: Vec<Candidate>,
    values: usize,
    null_words: usize,
    numbers: Digits,
    /// Of seconds.
    digits: usize,
    zoned: Option<bool>,
    fits_nanoseconds: bool,
    /// A zero that a number would lose.
    padded: bool,
    grouped: bool,
    given: Notation,
}

/// How the values of a file are written, as far as some column shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Habits {
    /// Some column can only have decimal commas, or points.
    commas: bool,
    points: bool,
    /// The order of dates that some column can only have.
    order: Option<DateOrder>,
    /// Decimal commas are not looked for where commas separate the values.
    comma_separates: bool,
    semicolon_separates: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Typed {
    pub data_type: DataType,
    pub(crate) notation: Notation,
    pub note: Option<String>,
}

impl Guess {
    /// Nothing is known but the notations that were asked for.
    pub(super) fn new(given: Notation) -> Self {
        let mut alive = vec![Candidate::Boolean, Candidate::Integer, Candidate::Huge, Candidate::Float];
        alive.extend([Candidate::Comma, Candidate::CommaGroups, Candidate::PointGroups]);
        alive.extend(DateOrder::ALL.map(Candidate::Date));
        alive.push(Candidate::Time);
        alive.extend(DateOrder::ALL.map(Candidate::Stamp));
        Self {
            alive,
            values: 0,
            null_words: 0,
            numbers: Digits::default(),
            digits: 0,
            zoned: None,
            fits_nanoseconds: true,
            padded: false,
            grouped: false,
            given,
        }
    }

    /// Takes a value that is not null.
    pub(super) fn add(&mut self, text: &[u8], words: bool) {
        if words && is_null_word(text) {
            self.null_words += 1;
            return;
        }
        self.values += 1;
        if self.alive.is_empty() {
            return;
        }
        let text = text.trim_ascii();
        self.padded |= values::is_padded(text);
        let given = self.given.clone();
        let mut alive = std::mem::take(&mut self.alive);
        alive.retain(|candidate| self.takes(*candidate, text, &given));
        self.alive = alive;
    }

    /// Takes a value that is text, whatever it looks like.
    pub(crate) fn add_text(&mut self) {
        self.values += 1;
        self.alive.clear();
    }

    fn takes(&mut self, candidate: Candidate, text: &[u8], given: &Notation) -> bool {
        match candidate {
            Candidate::Boolean => values::boolean(text).is_some(),
            Candidate::Integer => {
                !self.padded
                    && values::is_well_grouped(text, given)
                    && values::integer(text, given.thousands).is_some()
            }
            Candidate::Huge => !self.padded && values::huge(text).is_some(),
            Candidate::Float => self.float(text, given),
            Candidate::Comma => {
                !self.padded && keeps_float(text, &Notation { decimal: b',', ..Notation::default() })
            }
            Candidate::CommaGroups => self.groups(text, b',', b'.'),
            Candidate::PointGroups => self.groups(text, b'.', b','),
            Candidate::Date(order) => values::date(text, &ordered(given, order)).is_some(),
            Candidate::Time => values::time(text).is_some(),
            Candidate::Stamp(order) => self.stamp(text, &ordered(given, order)),
        }
    }

    fn float(&mut self, text: &[u8], given: &Notation) -> bool {
        let Some(plain) = values::plain(text, given).filter(|_| values::float(text, given).is_some()) else {
            return false;
        };
        self.numbers.unite(Digits::of(&plain));
        !self.padded && values::is_well_grouped(text, given)
    }

    fn groups(&mut self, text: &[u8], thousands: u8, decimal: u8) -> bool {
        let grouped = values::is_grouped(text, thousands, decimal);
        self.grouped |= grouped;
        let notation = Notation { decimal, thousands: Some(thousands), ..Notation::default() };
        let whole =
            text.iter().take_while(|byte| **byte != decimal).filter(|byte| byte.is_ascii_digit()).count();
        !self.padded
            && (grouped || (whole <= 3 && !text.contains(&thousands)))
            && keeps_float(text, &notation)
    }

    fn stamp(&mut self, text: &[u8], notation: &Notation) -> bool {
        let Some(stamp) = values::stamp(text, notation) else { return false };
        self.digits = self.digits.max(stamp.digits);
        self.fits_nanoseconds &= stamp.in_units(1_000_000_000).is_some();
        *self.zoned.get_or_insert(stamp.zoned) == stamp.zoned
    }

    fn has(&self, candidate: Candidate) -> bool {
        self.alive.contains(&candidate)
    }

    fn only_order(&self) -> Option<DateOrder> {
        let mut orders =
            [DateOrder::Dmy, DateOrder::Mdy].into_iter().filter(|o| self.has(Candidate::Stamp(*o)));
        let first = orders.next()?;
        orders.next().is_none().then_some(first)
    }

    /// Whether habits of other files may change what the values mean.
    pub(super) fn is_open(&self, habits: &Habits) -> bool {
        let order = [DateOrder::Dmy, DateOrder::Mdy].iter().all(|order| self.has(Candidate::Stamp(*order)));
        let signs = [Candidate::Comma, Candidate::CommaGroups, Candidate::PointGroups];
        let sign = !self.has(Candidate::Integer) && signs.iter().any(|candidate| self.has(*candidate));
        self.values > 0 && (order && habits.order.is_none() || sign && !habits.commas && !habits.points)
    }

    pub(super) fn finish(&self, habits: &Habits) -> Typed {
        let text = |note: Option<&str>| self.typed(DataType::Utf8, note.map(str::to_owned));
        if self.values == 0 {
            return self.typed(if self.null_words > 0 { DataType::Utf8 } else { DataType::Null }, None);
        }
        if self.padded && self.alive.iter().all(|one| matches!(one, Candidate::Huge)) {
            return text(Some("leading zeros"));
        }
        for candidate in &self.alive {
            let typed = match candidate {
                Candidate::Boolean => DataType::Boolean,
                Candidate::Integer => DataType::Int64,
                Candidate::Huge => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
                Candidate::Float if habits.commas && self.has(Candidate::PointGroups) && self.grouped => {
                    return text(Some(
                        "`.` may be the sign of thousands: set decimal_separator or thousands",
                    ));
                }
                Candidate::Float => match self.numbers.real_type() {
                    DataType::Utf8 => return text(Some("more digits than numbers have")),
                    data_type => data_type,
                },
                Candidate::Comma | Candidate::CommaGroups | Candidate::PointGroups => {
                    match self.with_commas(habits) {
                        Some(typed) => return typed,
                        None => continue,
                    }
                }
                Candidate::Date(_) => return self.dated(DataType::Date32, habits),
                Candidate::Time => DataType::Time64(TimeUnit::Microsecond),
                Candidate::Stamp(_) => match self.stamp_type() {
                    Some(data_type) => return self.dated(data_type, habits),
                    None => continue,
                },
            };
            return self.typed(typed, None);
        }
        text(self.padded.then_some("leading zeros"))
    }

    fn typed(&self, data_type: DataType, note: Option<String>) -> Typed {
        Typed { data_type, notation: self.given.clone(), note }
    }

    /// A number with commas in it.
    fn with_commas(&self, habits: &Habits) -> Option<Typed> {
        let decimal = self.has(Candidate::Comma) && !habits.comma_separates && !habits.points;
        let groups = self.has(Candidate::CommaGroups) && self.grouped;
        let points = self.has(Candidate::PointGroups) && self.grouped && !habits.comma_separates;
        let (decimal, thousands) = match (decimal, groups, points) {
            (true, true, _) if habits.commas || habits.semicolon_separates => (b',', None),
            (_, true, _) => (b'.', Some(b',')),
            (true, false, _) => (b',', None),
            (false, false, true) => (b',', Some(b'.')),
            (false, false, false) => return None,
        };
        let notation = Notation { decimal, thousands, ..self.given.clone() };
        let note = match thousands {
            None => "decimal comma".to_owned(),
            Some(sign) => format!("`{}` between thousands", char::from(sign)),
        };
        Some(Typed { data_type: DataType::Float64, notation, note: Some(note) })
    }

    fn dated(&self, data_type: DataType, habits: &Habits) -> Typed {
        let wanted = |order: &DateOrder| match data_type {
            DataType::Date32 => self.has(Candidate::Date(*order)),
            _ => self.has(Candidate::Stamp(*order)),
        };
        let mut fitting = DateOrder::ALL.into_iter().filter(wanted);
        let first = fitting.next().unwrap_or_default();
        let other = fitting.next();
        let order = match (other, habits.order) {
            (Some(_), Some(known)) if wanted(&known) => known,
            _ => first,
        };
        let note = match (self.given.date_format.is_some() || self.given.stamp_format.is_some(), order, other)
        {
            (true, ..) | (_, DateOrder::Ymd, _) => None,
            (_, order, Some(_)) if habits.order.is_none() => {
                Some(format!("{}, though another order fits too: set dateformat", order.name()))
            }
            (_, order, _) => Some(order.name().to_owned()),
        };
        Typed { data_type, notation: ordered(&self.given, order), note }
    }

    fn stamp_type(&self) -> Option<DataType> {
        let unit = match self.digits {
            0 => TimeUnit::Second,
            1..=3 => TimeUnit::Millisecond,
            4..=6 => TimeUnit::Microsecond,
            _ if self.fits_nanoseconds => TimeUnit::Nanosecond,
            _ => return None,
        };
        Some(DataType::Timestamp(unit, (self.zoned == Some(true)).then(|| "UTC".into())))
    }
}

impl Habits {
    pub(super) fn of(guesses: &[Guess], delimiter: u8) -> Self {
        let commas = |guess: &Guess| {
            let groups = guess.has(Candidate::PointGroups) && guess.grouped && delimiter != b',';
            (guess.has(Candidate::Comma) || groups)
                && !guess.has(Candidate::Float)
                && !guess.has(Candidate::CommaGroups)
        };
        let points = |guess: &Guess| {
            let float = guess.has(Candidate::Float) && !guess.has(Candidate::Integer);
            let groups = guess.has(Candidate::CommaGroups) && guess.grouped && !guess.has(Candidate::Comma);
            (float || groups) && !guess.has(Candidate::PointGroups)
        };
        Self {
            commas: guesses.iter().any(|guess| guess.values > 0 && commas(guess)),
            points: guesses.iter().any(|guess| guess.values > 0 && points(guess)),
            order: guesses.iter().filter(|guess| guess.values > 0).find_map(Guess::only_order),
            comma_separates: delimiter == b',',
            semicolon_separates: delimiter == b';',
        }
    }

    /// What the files of one table show together. Orders of dates that contradict one another tell nothing.
    pub fn common(files: impl Iterator<Item = Self>) -> Self {
        let (mut common, mut contradicting) = (Self::default(), false);
        for file in files {
            common.commas |= file.commas;
            common.points |= file.points;
            contradicting |=
                file.order.is_some() && common.order.is_some_and(|order| Some(order) != file.order);
            common.order = common.order.or(file.order);
        }
        common.order = common.order.filter(|_| !contradicting);
        common
    }

    /// With those of `others` where the file shows none.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        let signs = if self.commas || self.points { self } else { others };
        let (commas, points) = (signs.commas, signs.points);
        Self { commas, points, order: self.order.or(others.order), ..self }
    }
}

/// Whether a text is a floating-point number that gives it back, if it is a whole one.
fn keeps_float(text: &[u8], notation: &Notation) -> bool {
    values::float(text, notation).is_some()
        && values::plain(text, notation).is_some_and(|plain| digits::is_exact(&plain))
}

fn ordered(given: &Notation, order: DateOrder) -> Notation {
    Notation { order, ..given.clone() }
}
