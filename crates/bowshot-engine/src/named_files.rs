//! Files that a statement names with their path: from what the statement says to a table of the files, below the places
//! that the operator has opened.

use bowshot_api::{Error, Result};
use bowshot_sql::rewrite::{FileOption, NamedFiles};
use bowshot_storage::{OptionValue, ReadOptions, file_catalog};
use datafusion::catalog::{SchemaProvider, TableProvider};
use std::sync::Arc;

/// The table that a name carries; see [`bowshot_sql::rewrite::files`].
pub(crate) async fn table(
    main: &dyn SchemaProvider,
    name: &str,
    files: NamedFiles,
) -> Result<Arc<dyn TableProvider>> {
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
