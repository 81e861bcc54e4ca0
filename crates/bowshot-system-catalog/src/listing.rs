//! All tables and views that one statement sees, for the system tables that list them.

use crate::client::Flavour;
use crate::functions::relations;
use crate::pg_catalog::oids;
use crate::{CatalogView, information_schema, pg_catalog};
use bowshot_api::catalog_names::{PG_CATALOG, SYSTEM_SCHEMA, TEMPORARY_CATALOG};
use bowshot_policy::Reading;
use bowshot_tables::{Definition, Entry, EntryName, External, Table, View};
use bowshot_types::result_metadata::table_schema;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Which tables are asked about.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// The only catalog and schema, if there is one: others are not even looked at.
    catalog: Option<String>,
    schema: Option<String>,
    /// What the names and numbers of tables fulfil.
    condition: Option<Condition>,
}

/// A condition on the columns of a listing that are the same in all rows of a table.
#[derive(Debug, Clone)]
struct Condition {
    schema: SchemaRef,
    /// What the columns of the schema have.
    keys: Vec<Key>,
    holds: Arc<dyn PhysicalExpr>,
}

/// What such a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Catalog,
    Schema,
    Name,
    Oid,
    /// The name of a table, or of one of its indexes.
    Relation,
    /// The number of the schema.
    Namespace,
}

/// The columns that say which table a row is about.
const KEYS: &[(&str, Key)] = crate::pairs! {
    "table_catalog" Key::Catalog, "table_schema" Key::Schema, "schemaname" Key::Schema,
    "table_name" Key::Name, "tablename" Key::Name, "viewname" Key::Name, "matviewname" Key::Name,
    "attrelid" Key::Oid, "adrelid" Key::Oid, "conrelid" Key::Oid, "indrelid" Key::Oid, "objoid" Key::Oid,
};

/// What a column of a listing has. Columns that others call the same have another meaning outside of `pg_class`.
fn key(listing: &str, name: &str) -> Option<Key> {
    match (listing, name) {
        ("pg_class", "oid") => Some(Key::Oid),
        ("pg_class", "relname") => Some(Key::Relation),
        ("pg_class", "relnamespace") => Some(Key::Namespace),
        _ => KEYS.iter().find(|(known, _)| *known == name).map(|(_, key)| *key),
    }
}

impl About {
    /// What the filters of a listing say that have to hold together.
    pub(crate) fn of(listing: &str, filters: &[Expr], state: &dyn Session) -> Self {
        let mut about = Self::default();
        for (name, value) in filters.iter().filter_map(equality) {
            match key(listing, name) {
                Some(Key::Catalog) => about.catalog = Some(value),
                Some(Key::Schema) => about.schema = Some(value),
                _ => {}
            }
        }
        let known = filters.iter().filter(|filter| Self::knows(listing, filter));
        about.condition = conjunction(known.cloned()).and_then(|filter| condition(listing, filter, state));
        about
    }

    /// Whether a filter of a listing says which tables.
    pub(crate) fn knows(listing: &str, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        !columns.is_empty()
            && !filter.is_volatile()
            && columns.iter().all(|column| key(listing, &column.name).is_some())
    }

    fn fits_schema(&self, catalog: &str, schema: &str) -> bool {
        self.catalog.as_deref().is_none_or(|wanted| wanted == catalog)
            && self.schema.as_deref().is_none_or(|wanted| wanted == schema)
    }

    /// Leaves the tables of a schema that may be asked about. What cannot be told stays: the filter looks at the rows once more.
    /// `constraints` gives the names and numbers of a table's constraints and their indexes, which have rows of their own.
    fn keep(
        &self,
        (catalog, schema): (&str, &str),
        names: &mut Vec<String>,
        constraints: impl Fn(&EntryName) -> Vec<(String, i64)>,
    ) {
        let Some(condition) = &self.condition else { return };
        let by_relation = condition.keys.iter().any(|key| matches!(key, Key::Oid | Key::Relation));
        // One row for each table, and one for each of its constraints.
        let (mut owners, mut relations) = (Vec::with_capacity(names.len()), Vec::new());
        for (at, name) in names.iter().enumerate() {
            owners.push(at);
            if by_relation {
                let name = EntryName::new(catalog, schema, name);
                relations.push((name.name.clone(), oids::table(&name)));
                for constraint in constraints(&name) {
                    owners.push(at);
                    relations.push(constraint);
                }
            }
        }
        let columns = condition.keys.iter().map(|key| -> ArrayRef {
            let same = |text: &str| Arc::new(StringArray::from_iter_values(owners.iter().map(|_| text))) as _;
            match key {
                Key::Catalog => same(catalog),
                Key::Schema => same(schema),
                Key::Name => Arc::new(owners.iter().map(|at| names.get(*at)).collect::<StringArray>()),
                Key::Relation => {
                    Arc::new(StringArray::from_iter_values(relations.iter().map(|(name, _)| name)))
                }
                Key::Oid => Arc::new(Int64Array::from_iter_values(relations.iter().map(|(_, oid)| *oid))),
                Key::Namespace => {
                    let oid = oids::schema(catalog, schema);
                    Arc::new(Int64Array::from_iter_values(owners.iter().map(|_| oid)))
                }
            }
        });
        let Ok(rows) = RecordBatch::try_new(Arc::clone(&condition.schema), columns.collect()) else { return };
        let holds = condition.holds.evaluate(&rows).and_then(|holds| holds.into_array(rows.num_rows()));
        let Ok(holds) = holds else { return };
        let Some(holds) = holds.as_boolean_opt() else { return };
        let mut kept = vec![false; names.len()];
        for (owner, holds) in owners.iter().zip(holds) {
            if holds == Some(true)
                && let Some(kept) = kept.get_mut(*owner)
            {
                *kept = true;
            }
        }
        let mut kept = kept.into_iter();
        names.retain(|_| kept.next().unwrap_or(true));
    }
}

/// The condition that a filter is; `None` if it cannot be computed of names and numbers.
fn condition(listing: &str, filter: Expr, state: &dyn Session) -> Option<Condition> {
    // A column of a table whose name stands in two of the listing's cannot be told apart.
    let filter = filter.transform(|part| {
        Ok(match part {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::from_name(column.name))),
            other => Transformed::no(other),
        })
    });
    let filter = filter.data().ok()?;
    let mut names: Vec<String> = filter.column_refs().into_iter().map(|column| column.name.clone()).collect();
    names.sort();
    let keys = names.iter().map(|name| key(listing, name)).collect::<Option<Vec<_>>>()?;
    let fields = names.into_iter().zip(&keys).map(|(name, key)| {
        let is_number = matches!(key, Key::Oid | Key::Namespace);
        Field::new(name, if is_number { DataType::Int64 } else { DataType::Utf8 }, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = DFSchema::try_from(Arc::clone(&schema)).ok()?;
    let holds = state.create_physical_expr(filter, &columns).ok()?;
    Some(Condition { schema, keys, holds })
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

impl CatalogView {
    /// Schemas with their catalogs, those of the server about itself included.
    pub(crate) fn all_schemas(&self) -> Vec<(String, String)> {
        self.schemas_within(|_| true)
    }

    /// The same of some catalogs: what is in other databases is not asked for nothing.
    pub(crate) fn schemas_within(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for catalog in self.catalog_names() {
            if !is_wanted(&catalog) {
                continue;
            }
            let provider = self.catalogs.catalog(&catalog);
            let mut schemas = provider.map(|provider| provider.schema_names()).unwrap_or_default();
            if catalog == TEMPORARY_CATALOG {
                schemas.retain(|schema| schema != INFORMATION_SCHEMA);
            } else {
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
        self.listed_within(about, |_| true)
    }

    /// The same of some catalogs.
    pub(crate) fn listed_within(&self, about: &About, is_wanted: impl Fn(&str) -> bool) -> Vec<Listed> {
        let mut listed = Vec::new();
        let asked = |catalog: &str| {
            about.catalog.as_deref().is_none_or(|wanted| wanted == catalog) && is_wanted(catalog)
        };
        for (catalog, schema) in self.schemas_within(asked) {
            if !about.fits_schema(&catalog, &schema) {
                continue;
            }
            let mut names = self.names_in(&catalog, &schema);
            about.keep((&catalog, &schema), &mut names, |name| self.constraints_of(name));
            names.sort();
            listed.extend(names.into_iter().map(|name| {
                let name = EntryName::new(&catalog, &schema, name);
                let what = self.what(&name);
                Listed { name, what }
            }));
        }
        listed
    }

    /// The sequences of some catalogs, which are listed as no tables.
    pub(crate) fn sequences_within(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Listed> {
        let tables = self.pinned.own().tables().chain(self.pinned.shared().tables());
        let sequences = tables
            .filter(|(name, table)| is_wanted(&name.catalog) && table.definition().sequence().is_some());
        sequences.map(|(name, _)| Listed { what: self.what(&name), name }).collect()
    }

    /// The same without those of the server about itself.
    pub(crate) fn listed_of_users(&self, about: &About) -> Vec<Listed> {
        let mut listed = self.listed(about);
        listed.retain(|listed| !listed.is_internal());
        listed
    }

    fn constraints_of(&self, name: &EntryName) -> Vec<(String, i64)> {
        let Some(Entry::Table(table)) = self.pinned.entry(name) else { return Vec::new() };
        let named = relations::constraints(name, table.definition()).into_iter();
        named.map(|index| (index.clone(), oids::constraint(name, &index))).collect()
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
            Ok(found) => found.map(|table| table_schema(table.as_ref())),
            Err(error) => {
                tracing::debug!(table = %listed.name, %error, "the columns of a table are not known");
                None
            }
        }
    }

    /// Whose names and types are asked for.
    pub(crate) fn flavour(&self) -> Flavour {
        Flavour::of(&self.options())
    }
}

/// For functions that look a thing up by what is said about it.
pub(crate) fn external(error: bowshot_api::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
