//! `FROM 'orders/*.csv'` and `FROM read_csv('x.csv', header = false)`: files named in a statement. The planner asks its
//! catalog for names only, so the name carries paths and options, in a form that no text can have.

use super::versions::MARK;
use crate::template::quoted;
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Array, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, TableAlias,
    TableFactor, TableFunctionArgs, UnaryOperator, Value,
};

/// Tells the name from one that carries a version.
const FILES: &str = "files";
/// Between the parts of the name, and between their items: characters that a path never has.
const PART: char = '\u{1e}';
const ITEM: char = '\u{1f}';

/// The functions, and the format that each asks for.
const FUNCTIONS: [(&str, &str); 18] = [
    ("read_csv", "csv"),
    ("read_csv_auto", "csv"),
    ("read_parquet", "parquet"),
    ("parquet_scan", "parquet"),
    ("read_json", "json"),
    ("read_json_auto", "json"),
    ("read_ndjson", "json"),
    ("read_ndjson_auto", "json"),
    ("read_json_objects", ""),
    ("read_arrow", "arrow"),
    ("read_ipc", "arrow"),
    ("read_avro", "avro"),
    ("read_orc", "orc"),
    ("read_xlsx", "xlsx"),
    ("read_excel", "xlsx"),
    ("read_lines", "text"),
    ("read_files", ""),
    ("read_file", ""),
];

/// Files that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFiles {
    /// The format that the function asks for; empty for what their names tell.
    pub format: String,
    /// Paths and patterns, in their order.
    pub paths: Vec<String>,
    /// Options by name, in lower case.
    pub options: Vec<(String, FileOption)>,
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOption {
    /// A text, a number or a truth value.
    Text(String),
    /// `['a', 'b']`
    List(Vec<String>),
    /// `{'a': 'INT'}`
    Map(Vec<(String, String)>),
}

/// The files that a name carries which [`super::statement`] has made.
pub fn files(name: &str) -> Option<NamedFiles> {
    let (what, rest) = name.strip_prefix(MARK)?.split_once(MARK)?;
    if what != FILES {
        return None;
    }
    let mut parts = rest.split(PART);
    let format = parts.next()?.to_owned();
    let paths = parts.next()?.split(ITEM).map(str::to_owned).collect();
    let options = parts.map(option).collect::<Option<_>>()?;
    Some(NamedFiles { format, paths, options })
}

fn option(part: &str) -> Option<(String, FileOption)> {
    let mut items = part.split(ITEM).map(str::to_owned);
    let (name, kind) = (items.next()?, items.next()?);
    let value = match kind.as_str() {
        "t" => FileOption::Text(items.next()?),
        "l" => FileOption::List(items.collect()),
        _ => {
            let items: Vec<String> = items.collect();
            let pairs = items.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            FileOption::Map(pairs.collect())
        }
    };
    Some((name, value))
}

impl NamedFiles {
    /// The name that carries all of it.
    ///
    /// # Errors
    /// `Invalid` for control characters, of which it is made.
    pub fn name(&self) -> Result<String> {
        let mut parts = vec![self.format.clone(), self.paths.join(&ITEM.to_string())];
        let strange = |text: &str| text.contains([MARK, PART, ITEM]);
        let mut all: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        for (name, value) in &self.options {
            let mut items: Vec<&str> = vec![name];
            match value {
                FileOption::Text(text) => items.extend(["t", text]),
                FileOption::List(list) => {
                    items.push("l");
                    items.extend(list.iter().map(String::as_str));
                }
                FileOption::Map(pairs) => {
                    items.push("m");
                    items.extend(pairs.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]));
                }
            }
            parts.push(items.join(&ITEM.to_string()));
            all.extend(items);
        }
        if all.into_iter().any(strange) {
            return Err(Error::invalid("paths and options must not contain control characters"));
        }
        Ok(format!("{MARK}{FILES}{MARK}{}", parts.join(&PART.to_string())))
    }
}

pub(super) fn mark(statement: &mut impl Tree) -> Result<()> {
    statement.try_change_tables(with_files)
}

fn with_files(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, args, .. } = factor else { return Ok(()) };
    let (files, shown) = match args {
        None => match path_of(name) {
            Some(path) => {
                let shown = stem(&path);
                (NamedFiles { format: String::new(), paths: vec![path], options: Vec::new() }, shown)
            }
            None => return Ok(()),
        },
        Some(arguments) => match function(name) {
            Some((called, format)) => (called_with(called, format, arguments)?, called.to_owned()),
            None => return Ok(()),
        },
    };
    *name = ObjectName(vec![ObjectNamePart::Identifier(quoted(&files.name()?))]);
    *args = None;
    alias.get_or_insert(TableAlias { explicit: true, name: quoted(&shown), columns: Vec::new(), at: None });
    Ok(())
}

/// A name that is a text: `FROM 'x.parquet'`.
fn path_of(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(Ident { value, quote_style: Some('\''), .. })] => Some(value.clone()),
        _ => None,
    }
}

/// What columns of a file are qualified by: its name without folders and endings.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name).to_lowercase()
}

fn function(name: &ObjectName) -> Option<(&'static str, &'static str)> {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
    FUNCTIONS.iter().find(|(known, _)| ident.value.eq_ignore_ascii_case(known)).copied()
}

fn called_with(called: &str, format: &str, arguments: &TableFunctionArgs) -> Result<NamedFiles> {
    let mut files = NamedFiles { format: format.to_owned(), paths: Vec::new(), options: Vec::new() };
    for argument in &arguments.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            })) => {
                files.options.push((option_name(left)?, value(right)?));
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if files.paths.is_empty() => {
                files.paths = match value(expr)? {
                    FileOption::Text(path) => vec![path],
                    FileOption::List(paths) => paths,
                    FileOption::Map(_) => return Err(no_path(called)),
                };
            }
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                files.options.push((name.value.to_lowercase(), value(expr)?));
            }
            FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                files.options.push((option_name(name)?, value(expr)?));
            }
            _ => return Err(no_path(called)),
        }
    }
    if files.paths.is_empty() {
        return Err(no_path(called));
    }
    Ok(files)
}

fn no_path(called: &str) -> Error {
    Error::invalid(format!("`{called}` takes a path or a list of paths, and options by name")).with_hint(
        format!("write {called}('orders/*.csv') or {called}(['a.csv', 'b.csv'], union_by_name = true)"),
    )
}

fn option_name(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Identifier(name) => Ok(name.value.to_lowercase()),
        other => Err(Error::invalid(format!("`{other}` is not a valid option name"))),
    }
}

fn value(expr: &Expr) -> Result<FileOption> {
    Ok(match expr {
        Expr::Array(Array { elem, .. }) => FileOption::List(elem.iter().map(text).collect::<Result<_>>()?),
        Expr::Dictionary(fields) => {
            let pairs = fields.iter().map(|field| Ok((field.key.value.clone(), text(&field.value)?)));
            FileOption::Map(pairs.collect::<Result<_>>()?)
        }
        Expr::Nested(inner) => value(inner)?,
        other => FileOption::Text(text(other)?),
    })
}

fn text(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::DoubleQuotedString(text)
            | Value::NationalStringLiteral(text) => Ok(text.clone()),
            Value::Number(number, _) => Ok(number.clone()),
            Value::Boolean(truth) => Ok(truth.to_string()),
            other => Err(no_literal(&other.to_string())),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Ok(format!("-{}", text(expr)?)),
        // Words such as `auto`, and types as words.
        Expr::Identifier(word) => Ok(word.value.clone()),
        other => Err(no_literal(&other.to_string())),
    }
}

fn no_literal(text: &str) -> Error {
    Error::invalid(format!("`{text}` is not a valid option value"))
        .with_hint("write a text, a number, true or false, a list of them, or names with types")
}
