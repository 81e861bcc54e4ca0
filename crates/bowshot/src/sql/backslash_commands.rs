//! Backslash commands of the prompt.

use super::output::{Destination, Format, Layout};
use super::statement::Runner;
use super::{say, set_option};
use anyhow::{Result, bail};
use arrow::array::{ArrayRef, BooleanArray, StringArray};
use arrow::datatypes::Field;
use arrow::record_batch::RecordBatch;
use bowshot_flight::client::{Columns, Table};
use clap::ValueEnum;
use std::sync::Arc;

const HELP: &str = "\
statements end with a semicolon and may span lines; Ctrl-C cancels, Ctrl-D leaves
  \\d            list tables and views            \\d NAME       columns of a table
  \\dt [NAME]    list tables only                 \\x            one line per value: on or off
  \\timing       tell the time: on or off         \\format FORM  table, csv, json
  \\rows N       rows that a table shows          \\set NAME=V   set a session option
  \\?            this help                        \\q            leave";

/// What the prompt does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Quit,
}

/// Runs one command, backslash included.
pub(super) async fn run(runner: &mut Runner, line: &str) -> Result<Next> {
    let line = line.trim().trim_end_matches(';');
    let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    match (command, argument) {
        ("\\q" | "\\quit" | "\\exit", _) => return Ok(Next::Quit),
        ("\\?" | "\\h" | "\\help", _) => say(HELP),
        ("\\timing", _) => toggle("timing", &mut runner.timing, argument)?,
        ("\\x", _) => toggle("expanded output", &mut runner.expanded, argument)?,
        ("\\set", pair) => set_option(&runner.client, pair).await?,
        ("\\format", name) => runner.destination = destination(name)?,
        ("\\rows", number) => match number.parse() {
            Ok(rows) => runner.max_rows = rows,
            Err(_) => bail!("`\\rows` takes a number; 0 shows all rows"),
        },
        ("\\d", "") => list(runner, None, |_| true).await?,
        ("\\dt", "") => list(runner, None, |kind| kind == "TABLE").await?,
        ("\\dt", name) => list(runner, Some(name), |kind| kind == "TABLE").await?,
        ("\\d", name) => describe(runner, name).await?,
        _ => bail!("unknown command `{command}`; `\\?` lists the commands"),
    }
    Ok(Next::Continue)
}

fn toggle(what: &str, value: &mut bool, argument: &str) -> Result<()> {
    *value = match argument {
        "" => !*value,
        "on" => true,
        "off" => false,
        other => bail!("`{other}` is neither `on` nor `off`"),
    };
    say(&format!("{what} is {}", if *value { "on" } else { "off" }));
    Ok(())
}

fn destination(name: &str) -> Result<Destination> {
    match Format::from_str(name, true) {
        Ok(format) => Destination::new(Some(format), None),
        Err(_) => bail!("`{name}` is not a format; use table, csv or json"),
    }
}

async fn list(runner: &Runner, pattern: Option<&str>, keep: impl Fn(&str) -> bool) -> Result<()> {
    let pattern = pattern.map(|name| name.replace('*', "%"));
    let mut tables = runner.client.tables(pattern.as_deref(), Columns::Omit).await?;
    tables.retain(|table| keep(&table.kind));
    let column = |value: fn(&Table) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(tables.iter().map(value)))
    };
    show(
        runner,
        &RecordBatch::try_from_iter([
            ("catalog", column(|table| &table.catalog)),
            ("schema", column(|table| &table.schema_name)),
            ("name", column(|table| &table.name)),
            ("kind", column(|table| &table.kind)),
        ])?,
    )
}

/// `NAME` may be `SCHEMA.NAME` or `CATALOG.SCHEMA.NAME`.
async fn describe(runner: &Runner, name: &str) -> Result<()> {
    let name = name.replace('"', "");
    let last = name.rsplit('.').next().unwrap_or(&name);
    let pattern = last.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    let mut tables = runner.client.tables(Some(&pattern), Columns::Include).await?;
    tables.retain(|table| full_name(table).ends_with(&format!(".{name}")));
    if tables.is_empty() {
        bail!("table `{name}` not found; `\\d` lists the tables");
    }
    for table in &tables {
        let Some(columns) = &table.columns else { continue };
        say(&format!("{} {}", table.kind.to_lowercase(), full_name(table)));
        let fields = columns.fields();
        let names = StringArray::from_iter_values(fields.iter().map(|field| field.name()));
        let types = StringArray::from_iter_values(fields.iter().map(|field| type_name(field)));
        let nullable: BooleanArray = fields.iter().map(|field| Some(field.is_nullable())).collect();
        let columns: [(&str, ArrayRef); 3] =
            [("column", Arc::new(names)), ("type", Arc::new(types)), ("nullable", Arc::new(nullable))];
        show(runner, &RecordBatch::try_from_iter(columns)?)?;
    }
    Ok(())
}

fn full_name(table: &Table) -> String {
    format!("{}.{}.{}", table.catalog, table.schema_name, table.name)
}

/// The SQL name with the Arrow type behind it, which says more about nested types.
fn type_name(field: &Field) -> String {
    let arrow_type = field.data_type().to_string();
    match field.metadata().get("ARROW:FLIGHT:SQL:TYPE_NAME") {
        Some(name) => format!("{name} ({arrow_type})"),
        None => arrow_type,
    }
}

fn show(runner: &Runner, batch: &RecordBatch) -> Result<()> {
    let layout = Layout { max_rows: 0, expanded: runner.expanded };
    let mut sink = runner.destination.open(&batch.schema(), layout)?;
    sink.write(batch)?;
    sink.finish().map(drop)
}
