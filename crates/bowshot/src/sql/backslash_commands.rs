//! Backslash commands of the prompt.

use super::output::{Destination, Format};
use super::statement::{Outcome, Runner};
use super::{say, set_option, statements_of};
use anyhow::{Context, Result, bail};
use arrow::array::{ArrayRef, BooleanArray, StringArray};
use arrow::datatypes::Field;
use arrow::record_batch::RecordBatch;
use bowshot_api::catalog_names::{PG_CATALOG, SYSTEM_SCHEMA};
use bowshot_flight::client::{Columns, Table};
use clap::ValueEnum;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const HELP: &str = "\
statements end with a semicolon and may span lines; Ctrl-C cancels, Ctrl-D leaves
  \\d            list tables and views            \\d NAME       columns of a table
  \\dt [NAME]    list tables only                 \\dn           list schemas
  \\df [NAME]    list functions                   \\l            list catalogs
  \\i FILE       run the statements in a file     \\e [FILE]     edit the last statements, or a file, and run
  \\o FILE       write the next result to a file  \\x            one line per value: on or off
  \\timing       tell the time: on or off         \\format FORM  table, csv, json
  \\rows N       rows that a table shows          \\set NAME=V   set a session option
  \\?            this help                        \\q            leave; so do `exit` and `quit`";

/// Schemas that are the server's own, which nobody looks for among the tables.
const SYSTEM_SCHEMAS: [&str; 4] = [SYSTEM_SCHEMA, PG_CATALOG, "information_schema", "mysql"];

/// What the prompt does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Quit,
}

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
        ("\\l", name) => run_each(runner, &like("SHOW DATABASES", name)).await?,
        ("\\dn", name) => run_each(runner, &like("SHOW SCHEMAS", name)).await?,
        ("\\df", name) => run_each(runner, &like("SHOW FUNCTIONS", name)).await?,
        ("\\o", file) => set_next_destination(runner, file)?,
        ("\\i", "") => bail!("`\\i` takes the name of a file"),
        ("\\i", file) => run_each(runner, &read(Path::new(file))?).await?,
        ("\\e", file) => {
            let text = edited(&runner.last, file).await?;
            say(text.trim_end());
            // Also of those that fail.
            runner.last.clone_from(&text);
            run_each(runner, &text).await?;
        }
        _ => bail!("unknown command `{command}`; `\\?` lists the commands"),
    }
    Ok(Next::Continue)
}

/// Sends the next result to a file, or to the terminal as all others.
fn set_next_destination(runner: &mut Runner, file: &str) -> Result<()> {
    runner.next_destination =
        if file.is_empty() { None } else { Some(Destination::new(None, Some(Path::new(file)))?) };
    say(&match file {
        "" => "results go to the terminal".to_owned(),
        _ => format!("the next result goes to `{file}`"),
    });
    Ok(())
}

/// Runs the statements of a text in turn, up to the first that fails or is cancelled.
pub(super) async fn run_each(runner: &mut Runner, text: &str) -> Result<()> {
    for sql in statements_of(text) {
        if runner.run_next(sql).await? == Outcome::Cancelled {
            say("cancelled");
            break;
        }
    }
    Ok(())
}

/// A statement that lists names, of which `*` stands for anything.
fn like(statement: &str, pattern: &str) -> String {
    match pattern {
        "" => statement.to_owned(),
        _ => format!("{statement} LIKE '{}'", pattern.replace('\'', "''").replace('*', "%")),
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// What the user's editor makes of the last statements, or of a file.
async fn edited(last: &str, file: &str) -> Result<String> {
    let own = tempfile::Builder::new().prefix("bowshot-").suffix(".sql").tempfile();
    let own = own.context("cannot make a file for the editor")?;
    let path = if file.is_empty() { own.path() } else { Path::new(file) };
    if file.is_empty() {
        std::fs::write(path, last).context("cannot write the file for the editor")?;
    }
    let editor =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // It may be a command with arguments.
    let mut words = editor.split_whitespace().map(ToOwned::to_owned);
    let mut command = Command::new(words.next().context("`EDITOR` is empty")?);
    command.args(words).arg(path);
    let status = tokio::task::spawn_blocking(move || command.status()).await?;
    let status = status.with_context(|| format!("cannot start the editor `{editor}`"))?;
    if !status.success() {
        bail!("the editor ended with {status}");
    }
    read(path)
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
    tables.retain(|table| keep(&table.kind) && !SYSTEM_SCHEMAS.contains(&table.schema_name.as_str()));
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
    let mut sink = runner.destination.open(&batch.schema(), runner.layout(0))?;
    sink.write(batch)?;
    sink.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn names_may_have_stars_and_quotes() {
        assert_eq!(like("SHOW SCHEMAS", ""), "SHOW SCHEMAS");
        assert_eq!(like("SHOW FUNCTIONS", "date*"), "SHOW FUNCTIONS LIKE 'date%'");
        assert_eq!(like("SHOW SCHEMAS", "o'x"), "SHOW SCHEMAS LIKE 'o''x'");
    }
}
