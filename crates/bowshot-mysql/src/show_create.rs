//! `SHOW CREATE TABLE` as MySQL writes it, from which clients read the columns, defaults, comments and keys of a table. The
//! engine's own text has names in double quotes, which are strings in MySQL, and does not cover tables of files.

use crate::connection::Connection;
use crate::encode::ColumnType;
use crate::status::Result;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Field, Schema};
use bowshot_api::catalog_names::{DEFAULT_SCHEMA, TEMPORARY_CATALOG};
use bowshot_api::{Delivery, Endpoints, OptionValue, Request, Session, Statement, TableName};
use bowshot_sql::mysql::{default_text, expression_text, quoted_name, quoted_text};
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
        let about = self.about(&table).await?;
        if let Some(query) = &about.query {
            return Ok(view_definition(&table.name, &description.schema, query));
        }
        let text = text(&table.name, &description.schema, &about);
        Ok(format!(
            "SELECT {} AS `Table`, {} AS `Create Table`",
            quoted_text(&table.name),
            quoted_text(&text)
        ))
    }

    /// The description of a table in `information_schema`; empty if it is not there. A temporary table hides another one.
    async fn about(&mut self, table: &TableName) -> Result<About> {
        let session = Arc::clone(&self.session);
        let own = ["catalog", "schema"].map(|name| option(session.as_ref(), name));
        let [own_catalog, own_schema] = own.clone();
        let place =
            [table.catalog.clone().unwrap_or(own_catalog), table.schema_name.clone().unwrap_or(own_schema)];
        if place == own {
            let about = self.about_within([TEMPORARY_CATALOG, DEFAULT_SCHEMA], &table.name).await?;
            if !about.columns.is_empty() {
                return Ok(about);
            }
        }
        self.about_within(place.each_ref().map(String::as_str), &table.name).await
    }

    async fn about_within(&mut self, place: [&str; 2], name: &str) -> Result<About> {
        let [catalog, schema, name] = [place[0], place[1], name].map(quoted_text);
        let found = format!("table_catalog = {catalog} AND table_schema = {schema} AND table_name = {name}");
        let columns = "SELECT column_name, column_type, column_default, extra, column_comment, \
                       generation_expression FROM information_schema.columns";
        let mut about = About::default();
        for row in self.texts(format!("{columns} WHERE {found}"), 6).await? {
            about.add_column(<[Option<String>; 6]>::try_from(row).unwrap_or_default());
        }
        if about.columns.is_empty() {
            return Ok(about);
        }
        let tables = "SELECT table_comment, create_options FROM information_schema.tables";
        for row in self.texts(format!("{tables} WHERE {found}"), 2).await? {
            [about.comment, about.clauses] = <[Option<String>; 2]>::try_from(row).unwrap_or_default();
        }
        let views = "SELECT view_definition FROM information_schema.views";
        for row in self.texts(format!("{views} WHERE {found}"), 1).await? {
            about.query = row.into_iter().next().flatten();
        }
        let indexes = "SELECT index_name, column_name FROM information_schema.statistics";
        let order = "ORDER BY index_name, seq_in_index";
        for row in self.texts(format!("{indexes} WHERE {found} {order}"), 2).await? {
            about.add_key(<[Option<String>; 2]>::try_from(row).unwrap_or_default());
        }
        let keys = "SELECT constraint_name, column_name, referenced_table_schema, referenced_table_name, \
                    referenced_column_name FROM information_schema.key_column_usage";
        let order = "referenced_table_name IS NOT NULL ORDER BY constraint_name, ordinal_position";
        for row in self.texts(format!("{keys} WHERE {found} AND {order}"), 5).await? {
            about.refer(<[Option<String>; 5]>::try_from(row).unwrap_or_default(), place[1]);
        }
        let rules = format!(
            "SELECT constraint_name, delete_rule, update_rule FROM information_schema.referential_constraints \
             WHERE constraint_catalog = {catalog} AND constraint_schema = {schema} AND table_name = {name}"
        );
        for row in self.texts(rules, 3).await? {
            about.add_actions(<[Option<String>; 3]>::try_from(row).unwrap_or_default());
        }
        let checks = format!(
            "SELECT constraint_name, check_clause FROM information_schema.check_constraints \
             WHERE constraint_catalog = {catalog} AND constraint_schema = {schema} AND table_name = {name} \
             ORDER BY constraint_name"
        );
        for row in self.texts(checks, 2).await? {
            about.checks.push(<[Option<String>; 2]>::try_from(row).unwrap_or_default());
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
    /// The primary key and the unique ones: their names, and their columns in quotes.
    keys: Vec<(String, Vec<String>)>,
    references: Vec<ForeignKey>,
    /// Names and texts of conditions.
    checks: Vec<[Option<String>; 2]>,
}

#[derive(Debug, Default)]
struct AboutColumn {
    kind: Option<String>,
    default: Option<String>,
    is_counter: bool,
    comment: Option<String>,
    /// What it is computed by.
    generated: Option<String>,
}

/// A foreign key, which is not enforced. All names are quoted.
#[derive(Debug)]
struct ForeignKey {
    name: String,
    columns: Vec<String>,
    table: String,
    referred: Vec<String>,
    /// What becomes of its rows, as MySQL writes it.
    actions: String,
}

/// What the index of a primary key is called.
const PRIMARY: &str = "PRIMARY";

impl About {
    fn add_column(&mut self, row: [Option<String>; 6]) {
        let [name, kind, default, extra, comment, generated] = row;
        let is_counter = extra.as_deref() == Some("auto_increment");
        let column = AboutColumn { kind, default, is_counter, comment, generated };
        self.columns.insert(name.unwrap_or_default(), column);
    }

    /// Adds a column to a key; columns of one key come in order.
    fn add_key(&mut self, row: [Option<String>; 2]) {
        let [name, column] = row.map(Option::unwrap_or_default);
        if self.keys.last().is_none_or(|(last, _)| *last != name) {
            self.keys.push((name, Vec::new()));
        }
        if let Some((_, columns)) = self.keys.last_mut() {
            columns.push(quoted_name(&column));
        }
    }

    /// Adds a column to a foreign key; columns of one key come in order.
    fn refer(&mut self, row: [Option<String>; 5], own_schema: &str) {
        let own_schema = quoted_name(own_schema);
        let [name, column, schema, table, referred] =
            row.map(|text| quoted_name(text.as_deref().unwrap_or_default()));
        if self.references.last().is_none_or(|last| last.name != name) {
            let table = if schema == own_schema { table } else { format!("{schema}.{table}") };
            let (columns, referred, actions) = (Vec::new(), Vec::new(), String::new());
            self.references.push(ForeignKey { name, columns, table, referred, actions });
        }
        if let Some(last) = self.references.last_mut() {
            last.columns.push(column);
            last.referred.push(referred);
        }
    }
}

impl About {
    fn add_actions(&mut self, row: [Option<String>; 3]) {
        let [name, delete, update] = row.map(Option::unwrap_or_default);
        let name = quoted_name(&name);
        let Some(key) = self.references.iter_mut().find(|key| key.name == name) else { return };
        for (event, action) in [("DELETE", delete), ("UPDATE", update)] {
            if action != "NO ACTION" {
                _ = write!(key.actions, " ON {event} {action}");
            }
        }
    }
}

fn option(session: &dyn Session, name: &str) -> String {
    if let Some(OptionValue::String(text)) = session.option(name) { text } else { String::new() }
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

fn text(name: &str, schema: &Schema, about: &About) -> String {
    let nothing = AboutColumn::default();
    let column = |field: &Arc<Field>| about.columns.get(field.name()).unwrap_or(&nothing);
    let mut lines: Vec<String> =
        schema.fields().iter().map(|field| column_text(field, column(field))).collect();
    let (primary, unique): (Vec<_>, Vec<_>) = about.keys.iter().partition(|(name, _)| name == PRIMARY);
    lines.extend(primary.iter().map(|(_, columns)| format!("  PRIMARY KEY ({})", columns.join(","))));
    lines.extend(
        unique
            .iter()
            .map(|(name, columns)| format!("  UNIQUE KEY {} ({})", quoted_name(name), columns.join(","))),
    );
    for ForeignKey { name, columns, table, referred, actions } in &about.references {
        lines.push(format!(
            "  CONSTRAINT {name} FOREIGN KEY ({}) REFERENCES {table} ({}){actions}",
            columns.join(","),
            referred.join(",")
        ));
    }
    for [name, condition] in &about.checks {
        let (name, condition) =
            (name.as_deref().unwrap_or_default(), condition.as_deref().unwrap_or_default());
        let condition = expression_text(condition).unwrap_or_else(|_| condition.to_owned());
        lines.push(format!("  CONSTRAINT {} CHECK ({condition})", quoted_name(name)));
    }
    let mut text = format!("CREATE TABLE {} (\n", quoted_name(name));
    let clauses = about.clauses.as_deref().unwrap_or("ENGINE=Bowshot DEFAULT CHARSET=utf8mb4");
    _ = write!(text, "{}\n) {clauses}", lines.join(",\n"));
    if let Some(comment) = about.comment.as_deref().filter(|comment| !comment.is_empty()) {
        _ = write!(text, " COMMENT={}", quoted_text(comment));
    }
    text
}

fn column_text(field: &Field, about: &AboutColumn) -> String {
    let plain = ColumnType::from_field(field).sql();
    // With the length of texts and the digits of fractions.
    let says_more = |kind: &&str| match plain.as_str() {
        "text" => kind.contains('('),
        plain => [("datetime", "datetime"), ("time(", "time")]
            .iter()
            .any(|(begins, name)| plain.starts_with(begins) && kind.starts_with(name)),
    };
    let kind = about.kind.as_deref().filter(says_more);
    let mut text = format!("  {} {}", quoted_name(field.name()), kind.unwrap_or(&plain));
    if let Some(generated) = &about.generated {
        let generated = expression_text(generated).unwrap_or_else(|_| generated.clone());
        _ = write!(text, " GENERATED ALWAYS AS ({generated}) STORED");
    }
    if !field.is_nullable() {
        text.push_str(" NOT NULL");
    }
    if about.is_counter {
        text.push_str(" AUTO_INCREMENT");
    }
    if let Some(default) = &about.default {
        _ = write!(text, " DEFAULT {}", default_text(default).unwrap_or_else(|_| default.clone()));
    }
    if let Some(comment) = about.comment.as_deref().filter(|comment| !comment.is_empty()) {
        _ = write!(text, " COMMENT {}", quoted_text(comment));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, TimeUnit};

    #[test]
    fn tables_are_written_as_in_mysql() {
        let schema = Schema::new(vec![
            Field::new("a", DataType::UInt64, false),
            Field::new("b`c", DataType::Utf8, true),
            Field::new("d", DataType::Decimal128(10, 2), true),
            Field::new("e", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("f", DataType::Boolean, true),
        ]);
        let some = |text: &str| Some(text.to_owned());
        let mut about = About::default();
        about.add_key(["PRIMARY", "a"].map(some));
        assert_eq!(
            text("t", &schema, &about),
            "CREATE TABLE `t` (\n  `a` bigint unsigned NOT NULL,\n  `b``c` text,\n  `d` decimal(10,2),\n  `e` datetime(6),\n  \
             `f` tinyint(1),\n  PRIMARY KEY (`a`)\n) ENGINE=Bowshot DEFAULT CHARSET=utf8mb4"
        );
        let column = AboutColumn {
            kind: some("varchar(9)"),
            default: some("'x'"),
            comment: some("it's\ntwo lines"),
            ..AboutColumn::default()
        };
        let counter = AboutColumn { is_counter: true, ..AboutColumn::default() };
        let computed = AboutColumn { generated: some("\"n\" + 1"), ..AboutColumn::default() };
        let columns = [("s", column), ("n", counter), ("g", computed)];
        let mut about = About {
            columns: columns.map(|(name, column)| (name.to_owned(), column)).into(),
            comment: some("c"),
            clauses: some("ENGINE=OLAP DISTRIBUTED BY HASH(s) BUCKETS 3"),
            ..About::default()
        };
        about.refer(["k", "s", "main", "u", "a"].map(some), "main");
        about.refer(["k", "n", "main", "u", "b"].map(some), "main");
        about.refer(["l", "n", "other", "v", "a"].map(some), "main");
        about.add_actions(["l", "CASCADE", "NO ACTION"].map(some));
        about.add_key(["s_key", "s"].map(some));
        about.add_key(["s_key", "n"].map(some));
        about.checks.push(["positive", "n > 0"].map(some));
        let field = |name: &str, data_type, nullable| Field::new(name, data_type, nullable);
        let schema = Schema::new(vec![
            field("s", DataType::Utf8, true),
            field("n", DataType::Int32, false),
            field("g", DataType::Int32, true),
        ]);
        assert_eq!(
            text("t", &schema, &about),
            "CREATE TABLE `t` (\n  `s` varchar(9) DEFAULT 'x' COMMENT 'it''s\\ntwo lines',\n  `n` int NOT NULL AUTO_INCREMENT,\n  \
             `g` int GENERATED ALWAYS AS (`n` + 1) STORED,\n  UNIQUE KEY `s_key` (`s`,`n`),\n  \
             CONSTRAINT `k` FOREIGN KEY (`s`,`n`) REFERENCES `u` (`a`,`b`),\n  \
             CONSTRAINT `l` FOREIGN KEY (`n`) REFERENCES `other`.`v` (`a`) ON DELETE CASCADE,\n  CONSTRAINT `positive` CHECK (`n` > 0)\n\
             ) ENGINE=OLAP DISTRIBUTED BY HASH(s) BUCKETS 3 COMMENT='c'"
        );
    }
}
