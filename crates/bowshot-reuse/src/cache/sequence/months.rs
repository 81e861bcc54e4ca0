//! Names of months in names of tables: English, in full or the first three letters, in lower, upper or title case.

const NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const MAY: i64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Length {
    Short,
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Case {
    Lower,
    Upper,
    Title,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    /// From 1 on.
    pub(super) month: i64,
    pub(super) case: Case,
    pub(super) length: Length,
}

/// The month at the start of a text, and its length. `may` is the length of May.
pub(super) fn name_at(text: &str, may: Length) -> Option<(Named, usize)> {
    // A fast check by the first three letters, which are unique.
    let start = text.as_bytes().first_chunk::<3>()?.map(|letter| letter.to_ascii_lowercase());
    let (month, full) = (1..).zip(NAMES).find(|(_, full)| full.as_bytes().starts_with(&start))?;
    // In full first: `june` begins with `jun`.
    [Length::Full, Length::Short].into_iter().find_map(|length| {
        let name = length.of(full);
        let written = text.get(..name.len()).filter(|written| written.eq_ignore_ascii_case(name))?;
        let mut cases = [Case::Lower, Case::Upper, Case::Title].into_iter();
        let case = cases.find(|case| case.of(name) == written)?;
        let length = if month == MAY { may } else { length };
        Some((Named { month, case, length }, name.len()))
    })
}

impl Named {
    pub(super) fn write(self, name: &mut String) {
        let place = usize::try_from(self.month - 1).ok();
        let full = place.and_then(|place| NAMES.get(place)).copied().unwrap_or_default();
        name.push_str(&self.case.of(self.length.of(full)));
    }
}

impl Length {
    fn of(self, full: &str) -> &str {
        match self {
            Self::Short => full.get(..3).unwrap_or(full),
            Self::Full => full,
        }
    }
}

impl Case {
    /// Converts a lower-case word.
    pub(super) fn of(self, word: &str) -> String {
        match self {
            Self::Lower => word.to_owned(),
            Self::Upper => word.to_ascii_uppercase(),
            Self::Title => {
                let mut letters = word.chars();
                letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
            }
        }
    }
}
