//! Files that a statement names with their path, or an external table: from what is said of them to a table of the files, below
//! the places that the operator has opened.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_files::{FileCatalog, file_catalog};
use bowshot_formats::read_options::{OptionValue, ReadOptions};
use bowshot_policy::Access;
use bowshot_sql::rewrite::{FileOption, NamedFiles};
use bowshot_tables::External;
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
    check_may_name(access)?;
    read(file_catalog(main), name, files).await
}

/// # Errors
/// `Denied` for all but administrators: whoever names files gets round rights, row policies and masks.
pub(crate) fn check_may_name(access: &Access) -> Result<()> {
    if access.is_everything() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Denied, "only administrators may name files in a statement")
        .with_hint("ask for the table that the files are served as, or for a table made of them"))
}

/// The files of an external table. Who may read it, the rules for the table say: an administrator has named them.
///
/// # Errors
/// As [`table`] without rules: what the operator has closed since then is not read.
pub(crate) async fn external(
    catalog: Option<&Arc<FileCatalog>>,
    external: &External,
) -> Result<Arc<dyn TableProvider>> {
    let options = external.options.iter().map(|(name, value)| (name.clone(), said(value))).collect();
    let files = NamedFiles { format: external.format.clone(), paths: vec![external.path()], options };
    read(catalog, &files.name()?, files).await
}

/// What an external table keeps of what was said of its files.
pub(crate) fn kept(options: Vec<(String, FileOption)>) -> Vec<(String, OptionValue)> {
    options.into_iter().map(|(name, value)| (name, given(value))).collect()
}

async fn read(
    catalog: Option<&Arc<FileCatalog>>,
    name: &str,
    files: NamedFiles,
) -> Result<Arc<dyn TableProvider>> {
    let catalog = catalog.ok_or_else(|| {
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

fn said(value: &OptionValue) -> FileOption {
    match value.clone() {
        OptionValue::Text(text) => FileOption::Text(text),
        OptionValue::List(list) => FileOption::List(list),
        OptionValue::Map(pairs) => FileOption::Map(pairs),
    }
}

fn given(value: FileOption) -> OptionValue {
    match value {
        FileOption::Text(text) => OptionValue::Text(text),
        FileOption::List(list) => OptionValue::List(list),
        FileOption::Map(pairs) => OptionValue::Map(pairs),
    }
}
