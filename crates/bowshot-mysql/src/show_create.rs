//! `SHOW CREATE TABLE`, from which clients read the columns of a table: the text as MySQL writes it, with columns and key. What
//! the engine would write has names in double quotes, which are strings to MySQL, and has none for tables of files.

use crate::connection::Connection;
use crate::lex::{quoted_name, quoted_text};
use crate::rows::ColumnType;
use crate::status::{Failure, Result, Trouble};
use arrow::datatypes::Schema;
use bowshot_api::{PrimaryKey, Statement, TableName};
use std::fmt::Write as _;
use std::sync::Arc;

impl Connection {
    /// A query that gives the text, for a table by the parts of its name.
    ///
    /// # Errors
    /// Without the table.
    pub(crate) async fn show_create(&mut self, parts: &[String]) -> Result<String> {
        let session = Arc::clone(&self.session);
        let written: Vec<String> = parts.iter().map(|part| quoted_name(part)).collect();
        let statement = Statement::Sql(format!("SELECT * FROM {}", written.join(".")));
        let told = self.attend(session.describe(&statement)).await?;
        let mut rest = parts.iter().rev().cloned();
        let name = rest.next().unwrap_or_default();
        let table = TableName { schema_name: rest.next(), catalog: rest.next(), name };
        let key = match self.attend(session.primary_key(&table)).await {
            Ok(key) => key,
            // A view, or a table of this session alone, whose columns have been told.
            Err(Trouble::Failed(failure)) if is_missing(&failure) => None,
            Err(trouble) => return Err(trouble),
        };
        let text = text(&table.name, &told.schema, key.as_ref());
        Ok(format!(
            "SELECT {} AS `Table`, {} AS `Create Table`",
            quoted_text(&table.name),
            quoted_text(&text)
        ))
    }
}

fn is_missing(failure: &Failure) -> bool {
    failure.code.0 == 1146
}

fn text(name: &str, schema: &Schema, key: Option<&PrimaryKey>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for field in schema.fields() {
        let null = if field.is_nullable() { "" } else { " NOT NULL" };
        lines.push(format!("  {} {}{null}", quoted_name(field.name()), ColumnType::of(field).sql()));
    }
    if let Some(key) = key {
        let columns: Vec<String> = key.columns.iter().map(|column| quoted_name(column)).collect();
        lines.push(format!("  PRIMARY KEY ({})", columns.join(",")));
    }
    let mut text = format!("CREATE TABLE {} (\n", quoted_name(name));
    _ = write!(text, "{}\n) ENGINE=Bowshot DEFAULT CHARSET=utf8mb4", lines.join(",\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, TimeUnit};

    #[test]
    fn tables_are_written_as_in_mysql() {
        let schema = Schema::new(vec![
            Field::new("a", DataType::UInt64, false),
            Field::new("b`c", DataType::Utf8, true),
            Field::new("d", DataType::Decimal128(10, 2), true),
            Field::new("e", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("f", DataType::Boolean, true),
        ]);
        let key =
            PrimaryKey { table: [(); 3].map(|()| String::new()), name: None, columns: vec!["a".to_owned()] };
        assert_eq!(
            text("t", &schema, Some(&key)),
            "CREATE TABLE `t` (\n  `a` bigint unsigned NOT NULL,\n  `b``c` text,\n  `d` decimal(10,2),\n  `e` datetime(6),\n  \
             `f` tinyint(1),\n  PRIMARY KEY (`a`)\n) ENGINE=Bowshot DEFAULT CHARSET=utf8mb4"
        );
    }
}
