//! All tables and views that one statement sees, for the tables that list them.

use crate::catalog::client::Flavour;
use crate::catalog::{Visible, information_schema, pg_catalog};
use crate::policy::Reading;
use crate::snapshot::names::{PG_CATALOG, SYSTEM_SCHEMA, TEMPORARY_CATALOG};
use bowshot_storage::tables::{Definition, Entry, EntryName, External, Table, View};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Which tables are asked about; `None` for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct About {
    catalog: Option<String>,
    schema: Option<String>,
    table: Option<String>,
}

impl About {
    /// What the filters say that have to hold together.
    pub(crate) fn of(filters: &[Expr]) -> Self {
        let mut about = Self::default();
        for (name, value) in filters.iter().filter_map(equality) {
            match name {
                "table_catalog" => about.catalog = Some(value),
                "table_schema" => about.schema = Some(value),
                "table_name" => about.table = Some(value),
                _ => {}
            }
        }
        about
    }

    /// Whether a filter says which tables.
    pub(crate) fn knows(filter: &Expr) -> bool {
        equality(filter).is_some_and(|(name, _)| name.starts_with("table_"))
    }

    fn fits(&self, catalog: &str, schema: &str, table: &str) -> bool {
        self.fits_schema(catalog, schema) && self.table.as_deref().is_none_or(|wanted| wanted == table)
    }

    fn fits_schema(&self, catalog: &str, schema: &str) -> bool {
        self.catalog.as_deref().is_none_or(|wanted| wanted == catalog)
            && self.schema.as_deref().is_none_or(|wanted| wanted == schema)
    }
}

/// `column = 'text'`
fn equality(filter: &Expr) -> Option<(&str, String)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = filter else { return None };
    match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(value, _)) | (Expr::Literal(value, _), Expr::Column(column)) => {
            match value {
                ScalarValue::Utf8(Some(text))
                | ScalarValue::LargeUtf8(Some(text))
                | ScalarValue::Utf8View(Some(text)) => Some((column.name.as_str(), text.clone())),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A table or view with its full name.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) name: EntryName,
    pub(crate) what: What,
}

/// What is behind a name.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Table(Arc<Table>),
    /// A table of which a part may be seen: its columns, and not how many rows it has.
    Part(Arc<Table>),
    View(Arc<View>),
    /// What cannot be read.
    Broken,
    /// Files under a name of the catalog.
    External(Arc<External>),
    /// Files that the server serves.
    Files,
    /// The server about itself.
    System,
    /// A table of `information_schema` or `pg_catalog`.
    Standard,
}

impl Listed {
    pub(crate) fn definition(&self) -> Option<&Arc<Definition>> {
        match &self.what {
            What::Table(table) | What::Part(table) => Some(table.definition()),
            _ => None,
        }
    }

    pub(crate) fn view(&self) -> Option<&Arc<View>> {
        match &self.what {
            What::View(view) => Some(view),
            _ => None,
        }
    }

    pub(crate) fn comment(&self) -> Option<String> {
        match &self.what {
            What::Table(table) | What::Part(table) => table.definition().comment.clone(),
            What::View(view) => view.comment.clone(),
            What::External(external) => external.comment.clone(),
            _ => None,
        }
    }

    /// What the statement that made a table says beside its columns.
    pub(crate) fn clauses(&self) -> Option<String> {
        match &self.what {
            What::Table(table) | What::Part(table) => table.definition().clauses.clone(),
            _ => None,
        }
    }

    /// How many rows a table of our own has.
    pub(crate) fn rows(&self) -> Option<i64> {
        match &self.what {
            What::Table(table) => Some(table.rows().cast_signed()),
            _ => None,
        }
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.name.catalog == TEMPORARY_CATALOG
    }

    /// The query of a materialised view.
    pub(crate) fn materialized(&self) -> Option<&str> {
        self.definition()?.materialized.as_ref().map(|materialized| materialized.sql.as_str())
    }

    /// Whether it is one of the server's own.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self.what, What::System | What::Standard)
    }

    /// Whether it is a query, for those who ask.
    pub(crate) fn is_view(&self) -> bool {
        matches!(self.what, What::View(_) | What::Standard)
    }
}

impl Visible {
    /// Schemas with their catalogs, those of the server about itself included.
    pub(crate) fn all_schemas(&self) -> Vec<(String, String)> {
        self.schemas_within(None)
    }

    /// The same of one catalog, if one is wanted: what is in other databases is not asked for nothing.
    fn schemas_within(&self, wanted: Option<&str>) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for catalog in self.catalog_names() {
            if wanted.is_some_and(|wanted| wanted != catalog) {
                continue;
            }
            let mut schemas = self.schema_names(&catalog);
            if catalog != TEMPORARY_CATALOG {
                schemas.extend([INFORMATION_SCHEMA.to_owned(), PG_CATALOG.to_owned()]);
            }
            schemas.sort();
            schemas.dedup();
            all.extend(schemas.into_iter().map(|schema| (catalog.clone(), schema)));
        }
        all
    }

    /// The tables and views that are asked about, sorted by their names.
    pub(crate) fn listed(&self, about: &About) -> Vec<Listed> {
        let mut listed = Vec::new();
        for (catalog, schema) in self.schemas_within(about.catalog.as_deref()) {
            if !about.fits_schema(&catalog, &schema) {
                continue;
            }
            let mut names = self.names_in(&catalog, &schema);
            names.retain(|name| about.fits(&catalog, &schema, name));
            names.sort();
            listed.extend(names.into_iter().map(|name| {
                let name = EntryName::new(&catalog, &schema, name);
                let what = self.what(&name);
                Listed { name, what }
            }));
        }
        listed
    }

    /// The same without those of the server about itself.
    pub(crate) fn listed_of_users(&self, about: &About) -> Vec<Listed> {
        let mut listed = self.listed(about);
        listed.retain(|listed| !listed.is_internal());
        listed
    }

    fn names_in(&self, catalog: &str, schema: &str) -> Vec<String> {
        match schema {
            INFORMATION_SCHEMA => information_schema::names().map(str::to_owned).collect(),
            PG_CATALOG => pg_catalog::names().map(str::to_owned).collect(),
            _ => self.schema_provider(catalog, schema).map(|found| found.table_names()).unwrap_or_default(),
        }
    }

    fn what(&self, name: &EntryName) -> What {
        match self.pinned.entry(name) {
            Some(Entry::Table(table)) if self.access.reading(name) == Reading::All => {
                What::Table(Arc::clone(table))
            }
            Some(Entry::Table(table)) => What::Part(Arc::clone(table)),
            Some(Entry::View(view)) => What::View(Arc::clone(view)),
            Some(Entry::External(external)) => What::External(Arc::clone(external)),
            Some(Entry::Broken(_)) => What::Broken,
            None if name.schema == INFORMATION_SCHEMA || name.schema == PG_CATALOG => What::Standard,
            None if name.schema == SYSTEM_SCHEMA => What::System,
            None => What::Files,
        }
    }

    /// The columns of a table or view; `None` if it cannot be read, which keeps nobody from seeing the others.
    pub(crate) async fn columns_of(&self, listed: &Listed) -> Option<SchemaRef> {
        if let What::Table(table) | What::Part(table) = &listed.what {
            // With what is declared beyond the Arrow types.
            let columns = table.definition().columns.iter();
            let fields: Vec<FieldRef> = columns.map(|column| Arc::clone(&column.field)).collect();
            return Some(Arc::new(Schema::new(fields)));
        }
        let provider = self.schema_provider(&listed.name.catalog, &listed.name.schema)?;
        match provider.table(&listed.name.name).await {
            Ok(found) => found.map(|table| table.schema()),
            Err(error) => {
                tracing::debug!(table = %listed.name, %error, "the columns of a table are not known");
                None
            }
        }
    }

    /// Whose names and types are asked for.
    pub(crate) fn flavour(&self) -> Flavour {
        use datafusion::config::Dialect;
        match self.options().sql_parser.dialect {
            Dialect::MySQL => Flavour::MySql,
            Dialect::PostgreSQL => Flavour::Postgres,
            _ => Flavour::Bowshot,
        }
    }
}

/// For functions that look a thing up by what is said about it.
pub(crate) fn external(error: bowshot_api::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
