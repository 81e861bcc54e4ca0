//! DoPut of rows into a table: `CommandStatementIngest`, or a path. The rows are streamed into the session and
//! written all or none, so whatever can be checked without them is checked first.

use crate::caller::Caller;
use crate::handles::{TransactionHandle, scope};
use crate::put::update_result;
use crate::statement::table_name;
use crate::upload::{Rows, Upload};
use arrow_flight::sql::{
    CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use bowshot_api::{Error, IfExists, IfMissing, Ingest, Result, Session, TableName};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Runs an ingest; returns the metadata of the result.
pub(crate) async fn ingest(
    caller: &Caller,
    command: CommandStatementIngest,
    rows: impl Rows,
) -> Result<Bytes> {
    let handle = TransactionHandle::from_command(command.transaction_id.as_ref())?;
    let mut ingest = target(command)?;
    let (session, transaction) = scope(caller, handle).await?;
    ingest.transaction = transaction;
    write(caller, session.as_ref(), &ingest, rows).await
}

/// Makes the rows the content of the table that a path names, which is created if it is not there.
pub(crate) async fn store(caller: &Caller, path: &[String], upload: Upload) -> Result<Bytes> {
    let TableName { catalog, schema_name, name } = table_name(path)?;
    let ingest = Ingest {
        catalog,
        schema_name,
        table: name,
        temporary: false,
        if_missing: IfMissing::Create,
        if_exists: IfExists::Replace,
        transaction: None,
        options: BTreeMap::new(),
    };
    let session = caller.session().await?;
    write(caller, session.as_ref(), &ingest, upload).await
}

async fn write(caller: &Caller, session: &dyn Session, ingest: &Ingest, rows: impl Rows) -> Result<Bytes> {
    // One message may grow by its compression, but not without bounds.
    let max_bytes = caller.server().limits().max_message_bytes.saturating_mul(2);
    let rows = rows.batches(max_bytes).await?;
    Ok(update_result(Some(session.ingest(ingest, rows).await?)))
}

fn target(command: CommandStatementIngest) -> Result<Ingest> {
    let CommandStatementIngest {
        table_definition_options: table_options,
        table,
        schema,
        catalog,
        temporary,
        transaction_id: _,
        options,
    } = command;
    if table.is_empty() {
        return Err(Error::invalid("the ingest names no table").with_hint("set `table`"));
    }
    let table_options = table_options.unwrap_or_default();
    Ok(Ingest {
        catalog,
        schema_name: schema,
        table,
        temporary,
        if_missing: if_missing(&table_options)?,
        if_exists: if_exists(&table_options)?,
        transaction: None,
        options: options.into_iter().collect(),
    })
}

fn if_missing(options: &TableDefinitionOptions) -> Result<IfMissing> {
    match TableNotExistOption::try_from(options.if_not_exist) {
        Ok(TableNotExistOption::Create) => Ok(IfMissing::Create),
        Ok(TableNotExistOption::Fail) => Ok(IfMissing::Fail),
        Ok(TableNotExistOption::Unspecified) | Err(_) => {
            Err(Error::invalid("the ingest does not say what to do if the table is missing")
                .with_hint("set `table_definition_options.if_not_exist` to create or fail"))
        }
    }
}

fn if_exists(options: &TableDefinitionOptions) -> Result<IfExists> {
    match TableExistsOption::try_from(options.if_exists) {
        Ok(TableExistsOption::Fail) => Ok(IfExists::Fail),
        Ok(TableExistsOption::Append) => Ok(IfExists::Append),
        Ok(TableExistsOption::Replace) => Ok(IfExists::Replace),
        Ok(TableExistsOption::Unspecified) | Err(_) => {
            Err(Error::invalid("the ingest does not say what to do if the table exists")
                .with_hint("set `table_definition_options.if_exists` to fail, append or replace"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(if_not_exist: i32, if_exists: i32) -> CommandStatementIngest {
        CommandStatementIngest {
            table_definition_options: Some(TableDefinitionOptions { if_not_exist, if_exists }),
            table: "T".to_owned(),
            ..CommandStatementIngest::default()
        }
    }

    #[test]
    fn what_to_do_with_tables_that_are_there_or_not() {
        for (wire, expected) in [(1, IfMissing::Create), (2, IfMissing::Fail)] {
            assert_eq!(target(command(wire, 1)).unwrap().if_missing, expected);
        }
        for (wire, expected) in [(1, IfExists::Fail), (2, IfExists::Append), (3, IfExists::Replace)] {
            assert_eq!(target(command(1, wire)).unwrap().if_exists, expected);
        }
    }

    #[test]
    fn commands_that_are_refused() {
        let unsaid = CommandStatementIngest { table_definition_options: None, ..command(1, 1) };
        let unnamed = CommandStatementIngest { table: String::new(), ..command(1, 1) };
        for (command, expected) in [
            (command(0, 1), "the ingest does not say what to do if the table is missing"),
            (command(3, 1), "the ingest does not say what to do if the table is missing"),
            (command(1, 0), "the ingest does not say what to do if the table exists"),
            (command(1, -1), "the ingest does not say what to do if the table exists"),
            (unsaid, "the ingest does not say what to do if the table is missing"),
            (unnamed, "the ingest names no table"),
        ] {
            assert_eq!(target(command).unwrap_err().message(), expected);
        }
    }

    #[test]
    fn what_only_the_session_can_judge_comes_through() {
        let placed = CommandStatementIngest {
            schema: Some("s".to_owned()),
            catalog: Some("c".to_owned()),
            temporary: true,
            options: [("speed".to_owned(), "11".to_owned())].into(),
            ..command(1, 1)
        };
        let ingest = target(placed).unwrap();
        assert!(ingest.temporary);
        assert_eq!((ingest.catalog.as_deref(), ingest.schema_name.as_deref()), (Some("c"), Some("s")));
        assert_eq!(ingest.options, BTreeMap::from([("speed".to_owned(), "11".to_owned())]));
    }
}
