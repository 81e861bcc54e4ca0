//! MySQL's diagnostics area: the conditions of the last statement, which `SHOW WARNINGS` lists and each OK packet counts
//! (MySQL manual, "The Diagnostics Area", "SHOW WARNINGS Statement").

use crate::connection::Connection;
use crate::encode::ColumnType;
use crate::server_packets::{Column, put_counted};
use crate::status::Failure;
use arrow::datatypes::{DataType, Field};
use bowshot_api::Notice;
use bowshot_sql::mysql::ConditionSelection;

/// The most conditions of a statement, as by default in MySQL.
const MAX_CONDITIONS: usize = 64;

/// The conditions of the last statement.
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

    fn selected(&self, selection: &ConditionSelection) -> Vec<Condition> {
        let wanted = self.conditions.iter().filter(|condition| condition.is_error || !selection.errors_only);
        wanted.skip(selection.skip).take(selection.most).cloned().collect()
    }
}

impl Connection {
    /// Answers `SHOW WARNINGS` and `SHOW ERRORS`.
    pub(crate) fn show_conditions(&mut self, selection: &ConditionSelection) {
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
    fn conditions_are_counted_and_limited() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.add_error(&Failure::syntax("no"));
        diagnostics.add_notices(&vec![Notice::Missing("table", "t".to_owned()); 100]);
        assert_eq!(diagnostics.counts(), (64, 1));
        let errors =
            diagnostics.selected(&ConditionSelection { errors_only: true, skip: 0, most: usize::MAX });
        assert_eq!(errors, [Condition { is_error: true, code: 1064, message: "no".to_owned() }]);
        diagnostics.clear();
        assert_eq!(diagnostics.counts(), (0, 0));
    }
}
