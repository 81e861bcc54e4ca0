//! MySQL's diagnostics area: the conditions of the last statement, which `SHOW WARNINGS` lists and each OK packet counts
//! (MySQL manual, "The Diagnostics Area", "SHOW WARNINGS Statement").

use crate::connection::Connection;
use crate::encode::ColumnType;
use crate::reply::{Column, put_counted};
use crate::status::Failure;
use crate::tokens::{Kind, Token, tokens};
use arrow::datatypes::{DataType, Field};
use bowshot_api::Notice;

/// The most conditions of a statement, as by default in MySQL.
const MAX_CONDITIONS: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    is_error: bool,
    code: u16,
    message: String,
}

/// `SHOW WARNINGS` or `SHOW ERRORS`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    errors_only: bool,
    skip: usize,
    most: usize,
}

impl Diagnostics {
    pub(crate) fn clear(&mut self) {
        self.conditions.clear();
    }

    pub(crate) fn add_notices(&mut self, notices: &[Notice]) {
        for notice in notices {
            self.add(Condition { is_error: false, code: code(notice), message: notice.message() });
        }
    }

    pub(crate) fn add_error(&mut self, failure: &Failure) {
        self.add(Condition { is_error: true, code: failure.code.0, message: failure.text() });
    }

    fn add(&mut self, condition: Condition) {
        if self.conditions.len() < MAX_CONDITIONS {
            self.conditions.push(condition);
        }
    }

    /// The number of conditions, and of errors.
    pub(crate) fn counts(&self) -> (u16, u16) {
        let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let errors = self.conditions.iter().filter(|condition| condition.is_error).count();
        (count(self.conditions.len()), count(errors))
    }

    fn selected(&self, selection: &Selection) -> Vec<Condition> {
        let wanted = self.conditions.iter().filter(|condition| condition.is_error || !selection.errors_only);
        wanted.skip(selection.skip).take(selection.most).cloned().collect()
    }
}

impl Connection {
    /// Answers `SHOW WARNINGS` and `SHOW ERRORS`.
    pub(crate) fn show_conditions(&mut self, selection: &Selection) {
        let column = |name: &str, data_type| Column {
            name: name.to_owned(),
            kind: ColumnType::from_field(&Field::new(name, data_type, false)),
        };
        let columns = [
            column("Level", DataType::Utf8),
            column("Code", DataType::UInt32),
            column("Message", DataType::Utf8),
        ];
        self.put_header(&columns, None);
        for condition in self.diagnostics.selected(selection) {
            let level = if condition.is_error { "Error" } else { "Note" };
            self.wire.put(|out| {
                put_counted(out, level.as_bytes());
                put_counted(out, condition.code.to_string().as_bytes());
                put_counted(out, condition.message.as_bytes());
            });
        }
        self.end_of_rows(0);
    }
}

/// Whether a statement asks about the conditions of the last one, which must be kept for it.
pub(crate) fn asks(sql: &str) -> bool {
    let mut words = tokens(sql);
    let is_count = |token: Token<'_>| {
        let name = token.text.to_ascii_lowercase();
        token.kind == Kind::Variable && (name.ends_with("warning_count") || name.ends_with("error_count"))
    };
    match words.next() {
        Some(first) if first.is("show") => {
            words.next().is_some_and(|word| ["warnings", "errors", "count"].iter().any(|name| word.is(name)))
        }
        Some(first) if first.is("select") => sql.contains("@@") && words.any(is_count),
        _ => false,
    }
}

/// `SHOW WARNINGS|ERRORS [LIMIT [offset,] count]`
pub(crate) fn parse(sql: &str) -> Option<Selection> {
    let mut words = tokens(sql);
    if !words.next()?.is("show") {
        return None;
    }
    let what = words.next()?;
    if !what.is("warnings") && !what.is("errors") {
        return None;
    }
    let errors_only = what.is("errors");
    let rest: Vec<Token<'_>> = words.collect();
    let number = |token: &Token<'_>| token.text.parse::<usize>().ok();
    let (skip, most) = match rest.as_slice() {
        [] => (0, MAX_CONDITIONS),
        [limit, count] if limit.is("limit") => (0, number(count)?),
        [limit, skip, comma, count] if limit.is("limit") && comma.is_symbol(',') => {
            (number(skip)?, number(count)?)
        }
        _ => return None,
    };
    Some(Selection { errors_only, skip, most })
}

fn code(notice: &Notice) -> u16 {
    match notice {
        Notice::Missing("schema" | "catalog", _) => 1008,
        Notice::Missing(..) => 1051,
        Notice::Exists("schema" | "catalog", _) => 1007,
        Notice::Exists(..) => 1050,
        // "This version doesn't yet support" is the nearest code.
        Notice::NoIndexes | Notice::ForeignKeysNotEnforced => 1235,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_about_conditions_are_read() {
        let selection = |errors_only, skip, most| Some(Selection { errors_only, skip, most });
        for (sql, expected, is_about) in [
            ("SHOW WARNINGS", selection(false, 0, MAX_CONDITIONS), true),
            ("show errors limit 2", selection(true, 0, 2), true),
            ("SHOW WARNINGS LIMIT 1, 3", selection(false, 1, 3), true),
            ("SHOW COUNT(*) WARNINGS", None, true),
            ("SELECT @@session.warning_count", None, true),
            ("SELECT 1", None, false),
            ("SHOW TABLES", None, false),
        ] {
            assert_eq!((parse(sql), asks(sql)), (expected, is_about), "{sql}");
        }
    }

    #[test]
    fn conditions_are_counted_and_limited() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.add_error(&Failure::syntax("no"));
        diagnostics.add_notices(&vec![Notice::Missing("table", "t".to_owned()); 100]);
        assert_eq!(diagnostics.counts(), (64, 1));
        let errors = diagnostics.selected(&Selection { errors_only: true, skip: 0, most: MAX_CONDITIONS });
        assert_eq!(errors, [Condition { is_error: true, code: 1064, message: "no".to_owned() }]);
        diagnostics.clear();
        assert_eq!(diagnostics.counts(), (0, 0));
    }
}
