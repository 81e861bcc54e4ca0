//! Files that a statement names with their path: from what the statement says to a table of the files, below the places
//! that the operator has opened.

use crate::policy::Access;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_sql::rewrite::{FileOption, NamedFiles};
use bowshot_storage::{OptionValue, ReadOptions, file_catalog};
use datafusion::catalog::{SchemaProvider, TableProvider};
use std::sync::Arc;

/// The table that a name carries; see [`bowshot_sql::rewrite::files`].
///
/// # Errors
/// `Denied` for users with limited rights: these, row policies and masks belong to tables, and whoever could name the files of
/// one would get round them.
pub(crate) async fn table(
    main: &dyn SchemaProvider,
    access: &Access,
    name: &str,
    files: NamedFiles,
) -> Result<Arc<dyn TableProvider>> {
    if !access.is_everything() {
        return Err(Error::new(ErrorKind::Denied, "only administrators may name files in a statement")
            .with_hint("ask for the table that the files are served as, or for a table made of them"));
    }
    let catalog = file_catalog(main).ok_or_else(|| {
        Error::unsupported("this server serves no files")
            .with_hint("start it with a folder: `bowshot serve FOLDER`")
    })?;
    let mut options = ReadOptions::default();
    if !files.format.is_empty() {
        options.set("format", &OptionValue::Text(files.format))?;
    }
    for (option, value) in files.options {
        options.set(&option, &given(value))?;
    }
    catalog.named(name, files.paths, options).await
}

fn given(value: FileOption) -> OptionValue {
    match value {
        FileOption::Text(text) => OptionValue::Text(text),
        FileOption::List(list) => OptionValue::List(list),
        FileOption::Map(pairs) => OptionValue::Map(pairs),
    }
}
