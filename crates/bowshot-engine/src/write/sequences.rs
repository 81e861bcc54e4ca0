//! `CREATE SEQUENCE` and `DROP SEQUENCE`. A sequence is a table without rows, whose only column numbers itself: its name, its rights
//! and how long it stays are those of a table.

use crate::catalog::names::Names;
use crate::write::create_table::when_there;
use crate::write::ddl::Ddl;
use crate::write::{NewTable, columns};
use bowshot_api::{Error, Reason, Result};
use bowshot_tables::{Column, Definition, Entry, EntryName, IdentityKind};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ObjectName, SequenceOptions, Statement};
use std::sync::Arc;

/// The column of a sequence, as PostgreSQL calls it.
const COLUMN: &str = "last_value";

/// What CREATE SEQUENCE makes; `None` for other statements.
///
/// # Errors
/// `Unsupported` for bounds, and for sequences that go with a column.
pub(super) fn created(statement: &Statement, names: &Names) -> Result<Option<Ddl>> {
    let Statement::CreateSequence { temporary, if_not_exists, name, data_type, sequence_options, owned_by } =
        statement
    else {
        return Ok(None);
    };
    if !matches!(
        data_type,
        None | Some(
            SqlType::SmallInt(None) | SqlType::Int(None) | SqlType::Integer(None) | SqlType::BigInt(None)
        )
    ) {
        return Err(Error::invalid("the numbers of a sequence are whole"));
    }
    if owned_by.as_ref().is_some_and(|column| !column.to_string().eq_ignore_ascii_case("none")) {
        return Err(Error::unsupported("OWNED BY of a sequence is not supported")
            .with_hint("leave it out, and drop the sequence by itself"));
    }
    let (start, step) = columns::sequence(sequence_options)?;
    let starts = sequence_options.iter().any(|option| matches!(option, SequenceOptions::StartWith(..)));
    let least = sequence_options.iter().find_map(|option| match option {
        SequenceOptions::MinValue(least) => least.as_ref(),
        _ => None,
    });
    let start = match least {
        _ if starts => start,
        Some(least) => columns::number(least)?,
        None if step < 0 => -1,
        None => start,
    };
    if step < 0 && least.is_some() {
        return Err(Error::unsupported("MINVALUE of a sequence that goes down is not supported")
            .with_hint("leave it out"));
    }
    let name = names.new_name(name, *temporary)?;
    let column = Arc::new(Field::new(COLUMN, DataType::Int64, false));
    let definition = Definition {
        storage: names.storage(&name, None)?,
        columns: vec![Column { field: column, default: None, comment: None }],
        identities: vec![columns::identity(COLUMN, (start, step), IdentityKind::Sequence)],
        ..Definition::default()
    };
    let when_there = when_there(false, *if_not_exists)?;
    Ok(Some(Ddl::CreateTable(NewTable { name, definition, when_there })))
}

/// What DROP TABLE and DROP SEQUENCE drop: each its own kind.
///
/// # Errors
/// `Invalid` for the other kind.
pub(super) fn dropped(name: &ObjectName, if_exists: bool, kind: Kind, names: &Names) -> Result<Ddl> {
    let name = names.resolve(name)?;
    match names.entry(&name) {
        Some(Entry::Table(table)) if table.definition().sequence().is_some() != (kind == Kind::Sequence) => {
            Err(other_kind(&name, kind))
        }
        Some(Entry::View(_) | Entry::External(_)) if kind == Kind::Sequence => Err(other_kind(&name, kind)),
        _ => Ok(Ddl::DropTable { name, if_exists }),
    }
}

/// What is to be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Sequence,
}

fn other_kind(name: &EntryName, kind: Kind) -> Error {
    let (message, hint) = match kind {
        Kind::Table => (format!("`{name}` is a sequence"), "use `DROP SEQUENCE`"),
        Kind::Sequence => (format!("`{name}` is no sequence"), "use `DROP TABLE` or `DROP VIEW`"),
    };
    Error::invalid(message).with_reason(Reason::WrongObject).with_hint(hint)
}
