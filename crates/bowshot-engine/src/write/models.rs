//! `CREATE MODEL` and `DROP MODEL`. `FROM input` takes the file out of the rows that the client sends along: one column of bytes, one after the other.
//!
//! The file is read and understood before anything is made of it. Its bytes are on disk before the commit that names them;
//! a transaction that rolls back leaves a file that nobody names, which is removed later.

use crate::catalog::input::InputTable;
use crate::catalog::models::not_there;
use crate::catalog::names::Names;
use crate::error::classify;
use crate::execute::input_scan::Guess;
use crate::write::WhenThere;
use crate::write::copy::folder;
use crate::write::ddl::{Ddl, full};
use bowshot_api::catalog_names::DEFAULT_CATALOG;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_models::{Classes, Model, Task};
use bowshot_policy::access::Access;
use bowshot_policy::rules::{Key, ModelNote, Rules, model_place, model_text};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::without_model;
use bowshot_sql::{ModelFile, ModelStatement, Privilege};
use bowshot_tables::EntryName;
use chrono::Utc;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use futures::{Stream, StreamExt};
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
    pub(crate) file: ModelFile,
    /// What the file is said to be.
    pub(crate) format: Option<String>,
    pub(crate) when_there: WhenThere,
}

impl NewModel {
    /// Whether the client sends the file along.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.file, ModelFile::Sent(_))
    }
}

/// What a statement changes.
///
/// # Errors
/// From names.
pub(crate) fn change(statement: ModelStatement, names: &Names) -> Result<Ddl> {
    Ok(match statement {
        ModelStatement::Drop { name, if_exists } => {
            Ddl::DropModel { name: names.known_model(&name)?, if_exists }
        }
        ModelStatement::Create { name, file, format, replace, if_not_exists } => {
            let when_there = WhenThere::new(replace, if_not_exists);
            Ddl::CreateModel(NewModel { name: names.model(&name)?, file, format, when_there })
        }
    })
}

/// The plan that gives the rows with the file, where the client sends it.
///
/// # Errors
/// `Invalid` where there are no such rows, or where they are no bytes.
pub(crate) fn sent(ddl: &Ddl, pinned: &Pinned) -> Result<Option<LogicalPlan>> {
    let Ddl::CreateModel(NewModel { file: ModelFile::Sent(name), .. }) = ddl else { return Ok(None) };
    let input = pinned.input().filter(|input| input.name() == name).ok_or_else(|| {
        Error::invalid(format!("there are no rows `{name}` to read the model from")).with_hint(
            "write the path of a file in quotes, or send the file along by DoExchange, or by DoPut to the path `models`, name",
        )
    })?;
    let bytes = |kind: &DataType| {
        matches!(
            kind,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
        )
    };
    match input.schema().fields().iter().as_slice() {
        [column] if bytes(column.data_type()) => {}
        _ => {
            return Err(Error::invalid(format!(
                "`{name}` has not one column of bytes, which the model's file is"
            ))
            .with_hint("send the file as one column of binary values, in one row or in several"));
        }
    }
    let table = provider_as_source(InputTable::provider(input, Guess::Large));
    LogicalPlanBuilder::scan(name.as_str(), table, None)
        .and_then(LogicalPlanBuilder::build)
        .map(Some)
        .map_err(classify)
}

/// The file that the client sends: the bytes of all rows, one after the other.
///
/// # Errors
/// `LimitReached` for a file that is too large; what is wrong with the rows.
pub(crate) async fn gathered(
    mut rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin,
) -> Result<Vec<u8>> {
    let most = bowshot_models::limits::FILE_BYTES;
    let mut file = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let bytes = cast(batch.column(0), &DataType::LargeBinary).map_err(|error| classify(error.into()))?;
        for part in bytes.as_binary::<i64>() {
            let part = part.ok_or_else(|| Error::invalid("a part of the model's file is NULL"))?;
            if file.len().saturating_add(part.len()) > most {
                let message = format!("the model's file has more than {most} bytes");
                return Err(Error::new(ErrorKind::LimitReached, message));
            }
            file.extend_from_slice(part);
        }
    }
    Ok(file)
}

/// The state with a new model in it. `sent` is the file where it is none of the exchange folder.
///
/// # Errors
/// What is wrong with the file or the name; `Unsupported` with the name of what is not known in the model.
pub(crate) fn create(new: &NewModel, names: &Names, sent: Option<Vec<u8>>) -> Result<Pinned> {
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
        (None, _) if rules.models.len() >= MAX_MODELS => return Err(full(MAX_MODELS, "models")),
        _ => {}
    }
    let (bytes, called) = match (&new.file, sent) {
        (ModelFile::Named(path), _) => {
            (folder(names)?.contents(path, bowshot_models::limits::FILE_BYTES)?, path)
        }
        (ModelFile::Sent(name), Some(bytes)) => (bytes, name),
        (ModelFile::Sent(_), None) => return Err(Error::internal("the file of a model did not come")),
    };
    let length = bytes.len() as u64;
    let committed = names.parts.tables.snapshot().notes().read(Rules::of);
    // Of rules that cannot be read nobody knows what they name.
    if !committed.broken {
        let named: HashSet<String> = committed.files().into_iter().chain(rules.files()).collect();
        names.parts.models.sweep(&named);
    }
    let (sha256, model) = names.parts.models.put(bytes).map_err(|error| {
        let message = format!("`{called}`: {}", error.message());
        error.with_message(message)
    })?;
    if let Some(format) = new.format.as_deref().filter(|format| *format != model.format()) {
        return Err(Error::invalid(format!(
            "`{called}` is a model of format `{}`, not `{format}`",
            model.format()
        ))
        .with_hint("the formats are `xgboost`, `lightgbm` and `onnx`; without FORMAT the file tells it"));
    }
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
    names.check_schema(name)?;
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

/// Whether a schema has models, types or functions in it.
pub(crate) fn are_in(catalog: &str, schema: Option<&str>, names: &Names) -> bool {
    let rules = names.pinned.shared().notes().read(Rules::of);
    let within = |place: &Vec<String>| match place.as_slice() {
        [there, within, ..] => there == catalog && schema.is_none_or(|schema| schema == within),
        _ => false,
    };
    let is_within =
        |name: &EntryName| name.catalog == catalog && schema.is_none_or(|schema| schema == name.schema);
    rules.models.keys().any(within) || rules.types.keys().chain(rules.functions.keys()).any(is_within)
}
