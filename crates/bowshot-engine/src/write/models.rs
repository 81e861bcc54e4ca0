//! `CREATE [OR REPLACE] MODEL [IF NOT EXISTS] m FROM 'file'` and `DROP MODEL [IF EXISTS] m`, which the parser does not know.
//!
//! The file is read and understood before anything is made of it. Its bytes are on disk before the commit that names them;
//! a transaction that rolls back leaves a file that nobody names, which is removed later.

use crate::catalog::models::not_there;
use crate::catalog::names::Names;
use crate::policy::access::Access;
use crate::policy::rules::{Key, ModelNote, Rules, model_place, model_text};
use crate::policy::without_model;
use crate::snapshot::Pinned;
use crate::snapshot::names::DEFAULT_CATALOG;
use crate::write::WhenThere;
use crate::write::copy::folder;
use crate::write::ddl::Ddl;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_models::{Classes, Model, Task};
use bowshot_sql::Privilege;
use bowshot_storage::tables::EntryName;
use chrono::Utc;
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use serde_json::{Value, json};
use std::collections::HashSet;
use uuid::Uuid;

/// Models in all schemas: every snapshot holds their notes.
const MAX_MODELS: usize = 1_000;
/// Bytes of the names that a note tells; a note has a limit of its own.
const MAX_NAMES_BYTES: usize = 20 << 10;
/// Longest name of a model.
const MAX_NAME_CHARS: usize = 128;

/// A model to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewModel {
    pub(crate) name: EntryName,
    /// Of its file, in the exchange folder.
    pub(crate) path: String,
    pub(crate) when_there: WhenThere,
}

/// The statement, if the text is one of these.
///
/// # Errors
/// `Syntax` for one that is not complete.
pub(crate) fn recognise(sql: &str, dialect: &dyn Dialect, names: &Names) -> Result<Option<Ddl>> {
    let [first, second] = bowshot_sql::first_words(sql);
    if !matches!((first.as_str(), second.as_str()), ("create", "model" | "or") | ("drop", "model")) {
        return Ok(None);
    }
    let Ok(mut parser) = Parser::new(dialect).try_with_sql(sql) else { return Ok(None) };
    let Some(kind) = kind(&mut parser) else { return Ok(None) };
    let form = match kind {
        Kind::Drop => "DROP MODEL [IF EXISTS] name",
        _ => "CREATE [OR REPLACE] MODEL [IF NOT EXISTS] name FROM 'file'",
    };
    let read = parsed(&mut parser, kind).map_err(|error| {
        Error::new(ErrorKind::Syntax, format!("syntax error: {error}")).with_hint(format!("write `{form}`"))
    })?;
    Ok(Some(match read {
        Read::Drop { name, if_exists } => Ddl::DropModel { name: names.model(&name)?, if_exists },
        Read::Create { name, path, when_there } => {
            Ddl::CreateModel(NewModel { name: names.model(&name)?, path, when_there })
        }
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Create,
    Replace,
    Drop,
}

enum Read {
    Create { name: ObjectName, path: String, when_there: WhenThere },
    Drop { name: ObjectName, if_exists: bool },
}

/// Which statement begins here, with the words that say so taken.
fn kind(parser: &mut Parser<'_>) -> Option<Kind> {
    let kind = if parser.parse_keywords(&[Keyword::CREATE, Keyword::OR, Keyword::REPLACE]) {
        Kind::Replace
    } else if parser.parse_keyword(Keyword::CREATE) {
        Kind::Create
    } else if parser.parse_keyword(Keyword::DROP) {
        Kind::Drop
    } else {
        return None;
    };
    let is_model = matches!(&parser.peek_token_ref().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("model"));
    is_model.then(|| {
        parser.advance_token();
        kind
    })
}

fn parsed(parser: &mut Parser<'_>, kind: Kind) -> std::result::Result<Read, ParserError> {
    let read = if kind == Kind::Drop {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        Read::Drop { name: parser.parse_object_name(false)?, if_exists }
    } else {
        let keep = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let when_there = match (kind, keep) {
            (Kind::Replace, true) => {
                return Err(ParserError::ParserError(
                    "OR REPLACE and IF NOT EXISTS exclude each other".to_owned(),
                ));
            }
            (Kind::Replace, false) => WhenThere::Replace,
            (_, true) => WhenThere::Keep,
            (_, false) => WhenThere::Fail,
        };
        let name = parser.parse_object_name(false)?;
        parser.expect_keyword(Keyword::FROM)?;
        Read::Create { name, path: parser.parse_literal_string()?, when_there }
    };
    let _ = parser.consume_token(&Token::SemiColon);
    parser.expect_token(&Token::EOF)?;
    Ok(read)
}

/// The state with a new model in it.
///
/// # Errors
/// What is wrong with the file or the name; `Unsupported` with the name of what is not known in the model.
pub(crate) fn create(new: &NewModel, names: &Names) -> Result<Pinned> {
    let (pinned, name) = (&names.pinned, &new.name);
    check_name(name, names)?;
    let rules = pinned.shared().notes().read(Rules::of);
    let place = model_place(name);
    let there = rules.models.get(&place);
    match (there, new.when_there) {
        (Some(_), WhenThere::Keep) => return Ok(pinned.clone()),
        (Some(_), WhenThere::Fail) => {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("model `{name}` already exists"))
                .with_hint(
                    "use IF NOT EXISTS to keep it, OR REPLACE to make its next version, or another name",
                ));
        }
        (None, _) if rules.models.len() >= MAX_MODELS => {
            let message = format!("there are {MAX_MODELS} models, which is the limit");
            return Err(
                Error::new(ErrorKind::LimitReached, message).with_hint("drop models that are not needed")
            );
        }
        _ => {}
    }
    let bytes = folder(names)?.contents(&new.path, bowshot_models::limits::FILE_BYTES)?;
    let length = bytes.len() as u64;
    let committed = names.parts.tables.snapshot().notes().read(Rules::of);
    // Of rules that cannot be read nobody knows what they name.
    if !committed.broken {
        let named: HashSet<String> = committed.files().into_iter().chain(rules.files()).collect();
        names.parts.models.sweep(&named);
    }
    let (sha256, model) = names.parts.models.put(bytes).map_err(|error| {
        let message = format!("`{}`: {}", new.path, error.message());
        error.with_message(message)
    })?;
    let note = ModelNote {
        id: there.map_or_else(|| Uuid::new_v4().to_string(), |there| there.id.clone()),
        version: there.map_or(1, |there| there.version.saturating_add(1)),
        sha256,
        bytes: length,
        made: Utc::now().timestamp_micros(),
        facts: facts(&model),
    };
    let mut changes = vec![(Key::Model(&place).text(), Some(model_text(&note)))];
    if there.is_none() && !names.access.is_off() {
        changes.push((Key::Owner(&place).text(), Some(json!(names.access.user()).to_string())));
    }
    pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(changes))
}

fn check_name(name: &EntryName, names: &Names) -> Result<()> {
    if !names.pinned.has_schema(&name.catalog, &name.schema) {
        let schema = format!("{}.{}", name.catalog, name.schema);
        return Err(Error::not_found(format!("schema `{schema}` not found"))
            .with_reason(Reason::UndefinedSchema)
            .with_hint(format!("make it with `CREATE SCHEMA {schema}`")));
    }
    if name.name.is_empty() || name.name.chars().count() > MAX_NAME_CHARS {
        return Err(Error::invalid(format!("the name of a model has 1 to {MAX_NAME_CHARS} characters")));
    }
    Ok(())
}

/// What `system.models` tells. Names that are too many for a note are left out.
fn facts(model: &Model) -> Value {
    let fitting = |names: Vec<String>| {
        let bytes: usize = names.iter().map(|name| json!(name).to_string().len() + 1).sum();
        (!names.is_empty() && bytes <= MAX_NAMES_BYTES).then_some(names)
    };
    let classes = match model.task() {
        Task::Regression => None,
        Task::Classification(classes) => fitting(Classes::names(classes)),
    };
    json!({
        "format": model.format(),
        "objective": model.objective().chars().take(200).collect::<String>(),
        "feature_count": model.feature_count(),
        "features": fitting(model.feature_names().to_vec()),
        "feature_type": model.feature_type().to_string(),
        "prediction_type": model.prediction_type().to_string(),
        "classes": classes,
        "trees": model.tree_count(),
        "nodes": model.node_count(),
    })
}

/// The state without a model.
///
/// # Errors
/// `NotFound` without it.
pub(crate) fn drop_model(name: &EntryName, if_exists: bool, names: &Names) -> Result<Pinned> {
    let rules = names.pinned.shared().notes().read(Rules::of);
    let place = model_place(name);
    let there = rules.models.contains_key(&place) && may_know(name, &names.access);
    if !there {
        return if if_exists { Ok(names.pinned.clone()) } else { Err(not_there(name)) };
    }
    names.pinned.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_notes(without_model(&rules, &place)))
}

/// Who may neither ask nor change a model does not learn that it is there.
pub(crate) fn may_know(name: &EntryName, access: &Access) -> bool {
    let place = model_place(name);
    access.owns(&place) || access.may(Privilege::Select, &place)
}

/// Whether a schema has models in it.
pub(crate) fn are_in(catalog: &str, schema: Option<&str>, names: &Names) -> bool {
    let rules = names.pinned.shared().notes().read(Rules::of);
    let within = |place: &Vec<String>| match place.as_slice() {
        [there, within, ..] => there == catalog && schema.is_none_or(|schema| schema == within),
        _ => false,
    };
    rules.models.keys().any(within)
}
