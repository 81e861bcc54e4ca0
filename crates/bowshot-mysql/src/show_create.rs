//! `SHOW CREATE TABLE` as MySQL writes it, from which clients read the columns, defaults, comments and keys of a table. The
//! engine's own text has names in double quotes, which are strings in MySQL, and does not cover tables of files.

use crate::connection::Connection;
use crate::encode::ColumnType;
use crate::status::{ConnectionError, Failure, Result};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Schema;
use bowshot_api::{Delivery, Endpoints, OptionValue, PrimaryKey, Request, Session, Statement, TableName};
use bowshot_sql::mysql::{quoted_name, quoted_text};
use futures::TryStreamExt;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

impl Connection {
    /// A query that returns the text for a table or a view.
    pub(crate) async fn show_create(&mut self, parts: &[String]) -> Result<String> {
        let session = Arc::clone(&self.session);
        let written: Vec<String> = parts.iter().map(|part| quoted_name(part)).collect();
        let statement = Statement::Sql(format!("SELECT * FROM {}", written.join(".")));
        let description = self.wait_for(session.describe(&statement)).await?;
        let mut rest = parts.iter().rev().cloned();
        let name = rest.next().unwrap_or_default();
        let table = TableName { schema_name: rest.next(), catalog: rest.next(), name };
        let key = match self.wait_for(session.primary_key(&table)).await {
            Ok(key) => key,
            // A view, or a temporary table.
            Err(ConnectionError::Statement(failure)) if is_missing(&failure) => None,
            Err(error) => return Err(error),
        };
        let about = self.about(&table).await?;
        if let Some(query) = &about.query {
            return Ok(view_definition(&table.name, &description.schema, query));
        }
        let text = text(&table.name, &description.schema, key.as_ref(), &about);
        Ok(format!(
            "SELECT {} AS `Table`, {} AS `Create Table`",
            quoted_text(&table.name),
            quoted_text(&text)
        ))
    }

    /// The description of a table in `information_schema`; empty if it is not there.
    async fn about(&mut self, table: &TableName) -> Result<About> {
        let session = Arc::clone(&self.session);
        let catalog = table.catalog.clone().unwrap_or_else(|| option(session.as_ref(), "catalog"));
        let schema = table.schema_name.clone().unwrap_or_else(|| option(session.as_ref(), "schema"));
        let found = format!(
            "table_catalog = {} AND table_schema = {} AND table_name = {}",
            quoted_text(&catalog),
            quoted_text(&schema),
            quoted_text(&table.name)
        );
        let columns = "SELECT column_name, column_type, column_default, extra, column_comment \
                       FROM information_schema.columns";
        let mut about = About::default();
        for row in self.texts(format!("{columns} WHERE {found}"), 5).await? {
            let [name, kind, default, extra, comment] =
                <[Option<String>; 5]>::try_from(row).unwrap_or_default();
            let is_counter = extra.as_deref() == Some("auto_increment");
            about
                .columns
                .insert(name.unwrap_or_default(), AboutColumn { kind, default, is_counter, comment });
        }
        let tables = "SELECT table_comment, create_options FROM information_schema.tables";
        for row in self.texts(format!("{tables} WHERE {found}"), 2).await? {
            [about.comment, about.clauses] = <[Option<String>; 2]>::try_from(row).unwrap_or_default();
        }
        let views = "SELECT view_definition FROM information_schema.views";
        for row in self.texts(format!("{views} WHERE {found}"), 1).await? {
            about.query = row.into_iter().next().flatten();
        }
        let keys = "SELECT constraint_name, column_name, referenced_table_schema, referenced_table_name, \
                    referenced_column_name FROM information_schema.key_column_usage";
        let order = "referenced_table_name IS NOT NULL ORDER BY constraint_name, ordinal_position";
        for row in self.texts(format!("{keys} WHERE {found} AND {order}"), 5).await? {
            about.refer(<[Option<String>; 5]>::try_from(row).unwrap_or_default(), &schema);
        }
        Ok(about)
    }

    /// The rows of a query whose columns are texts.
    async fn texts(&mut self, sql: String, width: usize) -> Result<Vec<Vec<Option<String>>>> {
        let (server, session) = (Arc::clone(&self.server), Arc::clone(&self.session));
        let work = async move {
            let request = Request {
                endpoints: Some(Endpoints::Exactly(1)),
                delivery: Some(Delivery::Stream),
                ..Request::sql(sql)
            };
            let answer = session.start(&request).await?;
            let batches = server.attach(session.principal(), answer.query, 0).await?;
            batches.try_collect::<Vec<RecordBatch>>().await
        };
        let batches = self.wait_for(work).await?;
        let rows = batches.iter().flat_map(|batch| {
            (0..batch.num_rows()).map(|row| (0..width).map(|column| cell(batch, column, row)).collect())
        });
        Ok(rows.collect())
    }
}

/// The description of a table beside names and types of columns.
#[derive(Debug, Default)]
struct About {
    columns: HashMap<String, AboutColumn>,
    comment: Option<String>,
    clauses: Option<String>,
    /// The query of a view.
    query: Option<String>,
    references: Vec<ForeignKey>,
}

#[derive(Debug, Default)]
struct AboutColumn {
    kind: Option<String>,
    default: Option<String>,
    is_counter: bool,
    comment: Option<String>,
}

/// A foreign key, which is not enforced. All names are quoted.
#[derive(Debug)]
struct ForeignKey {
    name: String,
    columns: Vec<String>,
    table: String,
    referred: Vec<String>,
}

impl About {
    /// Adds a column to a foreign key; columns of one key come in order.
    fn refer(&mut self, row: [Option<String>; 5], own_schema: &str) {
        let own_schema = quoted_name(own_schema);
        let [name, column, schema, table, referred] =
            row.map(|text| quoted_name(text.as_deref().unwrap_or_default()));
        if self.references.last().is_none_or(|last| last.name != name) {
            let table = if schema == own_schema { table } else { format!("{schema}.{table}") };
            self.references.push(ForeignKey { name, columns: Vec::new(), table, referred: Vec::new() });
        }
        if let Some(last) = self.references.last_mut() {
            last.columns.push(column);
            last.referred.push(referred);
        }
    }
}

fn option(session: &dyn Session, name: &str) -> String {
    let options = session.options();
    let value = options.into_iter().find(|(known, _)| known == name).map(|(_, value)| value);
    if let Some(OptionValue::String(text)) = value { text } else { String::new() }
}

fn cell(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let texts = batch.columns().get(column)?.as_string_opt::<i32>()?;
    texts.is_valid(row).then(|| texts.value(row).to_owned())
}

/// A query that returns the definition of a view. Clients recognise views by the name of its first column.
fn view_definition(name: &str, schema: &Schema, query: &str) -> String {
    let columns: Vec<String> = schema.fields().iter().map(|field| quoted_name(field.name())).collect();
    let text = format!("CREATE VIEW {} ({}) AS {query}", quoted_name(name), columns.join(","));
    format!(
        "SELECT {} AS `View`, {} AS `Create View`, 'utf8mb4' AS character_set_client, \
         'utf8mb4_bin' AS collation_connection",
        quoted_text(name),
        quoted_text(&text)
    )
}

fn is_missing(failure: &Failure) -> bool {
    failure.code.0 == 1146
}

fn text(name: &str, schema: &Schema, key: Option<&PrimaryKey>, about: &About) -> String {
    let mut lines: Vec<String> = Vec::new();
    let nothing = AboutColumn::default();
    for field in schema.fields() {
        let about = about.columns.get(field.name()).unwrap_or(&nothing);
        let plain = ColumnType::from_field(field).sql();
        // With the length of texts and the digits of fractions.
        let says_more = |kind: &&str| match plain.as_str() {
            "text" => kind.contains('('),
            plain => [("datetime", "datetime"), ("time(", "time")]
                .iter()
                .any(|(begins, name)| plain.starts_with(begins) && kind.starts_with(name)),
        };
        let kind = about.kind.as_deref().filter(says_more);
        let mut line = format!("  {} {}", quoted_name(field.name()), kind.unwrap_or(&plain));
        if !field.is_nullable() {
            line.push_str(" NOT NULL");
        }
        if about.is_counter {
            line.push_str(" AUTO_INCREMENT");
        }
        if let Some(default) = &about.default {
            _ = write!(line, " DEFAULT {default}");
        }
        if let Some(comment) = about.comment.as_deref().filter(|comment| !comment.is_empty()) {
            _ = write!(line, " COMMENT {}", quoted_text(comment));
        }
        lines.push(line);
    }
    if let Some(key) = key {
        let columns: Vec<String> = key.columns.iter().map(|column| quoted_name(column)).collect();
        lines.push(format!("  PRIMARY KEY ({})", columns.join(",")));
    }
    for ForeignKey { name, columns, table, referred } in &about.references {
        lines.push(format!(
            "  CONSTRAINT {name} FOREIGN KEY ({}) REFERENCES {table} ({})",
            columns.join(","),
            referred.join(",")
        ));
    }
    let mut text = format!("CREATE TABLE {} (\n", quoted_name(name));
    let clauses = about.clauses.as_deref().unwrap_or("ENGINE=Bowshot DEFAULT CHARSET=utf8mb4");
    _ = write!(text, "{}\n) {clauses}", lines.join(",\n"));
    if let Some(comment) = about.comment.as_deref().filter(|comment| !comment.is_empty()) {
        _ = write!(text, " COMMENT={}", quoted_text(comment));
    }
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
            text("t", &schema, Some(&key), &About::default()),
            "CREATE TABLE `t` (\n  `a` bigint unsigned NOT NULL,\n  `b``c` text,\n  `d` decimal(10,2),\n  `e` datetime(6),\n  \
             `f` tinyint(1),\n  PRIMARY KEY (`a`)\n) ENGINE=Bowshot DEFAULT CHARSET=utf8mb4"
        );
        let some = |text: &str| Some(text.to_owned());
        let column = AboutColumn {
            kind: some("varchar(9)"),
            default: some("'x'"),
            comment: some("it's"),
            ..AboutColumn::default()
        };
        let counter = AboutColumn { is_counter: true, ..AboutColumn::default() };
        let mut about = About {
            columns: HashMap::from([("s".to_owned(), column), ("n".to_owned(), counter)]),
            comment: some("c"),
            clauses: some("ENGINE=OLAP DISTRIBUTED BY HASH(s) BUCKETS 3"),
            ..About::default()
        };
        about.refer(["k", "s", "main", "u", "a"].map(some), "main");
        about.refer(["k", "n", "main", "u", "b"].map(some), "main");
        about.refer(["l", "n", "other", "v", "a"].map(some), "main");
        let schema =
            Schema::new(vec![Field::new("s", DataType::Utf8, true), Field::new("n", DataType::Int32, false)]);
        assert_eq!(
            text("t", &schema, None, &about),
            "CREATE TABLE `t` (\n  `s` varchar(9) DEFAULT 'x' COMMENT 'it''s',\n  `n` int NOT NULL AUTO_INCREMENT,\n  \
             CONSTRAINT `k` FOREIGN KEY (`s`,`n`) REFERENCES `u` (`a`,`b`),\n  \
             CONSTRAINT `l` FOREIGN KEY (`n`) REFERENCES `other`.`v` (`a`)\n\
             ) ENGINE=OLAP DISTRIBUTED BY HASH(s) BUCKETS 3 COMMENT='c'"
        );
    }
}
