//! What DataFusion's planner of CREATE TABLE does not take: defaults, comments, constraints, columns that number themselves.

use crate::catalog::names::{Names, ident};
use crate::write::change;
use crate::write::columns::{self, Own};
use crate::write::create_table::{check_column_name, free_name, kept_field};
use bowshot_api::variant::has_variants;
use bowshot_api::{Error, ErrorKind, Layout, Reason, Result};
use bowshot_sql::CLAUSES;
use bowshot_tables::{Check, Column, Definition, Generated, Identity, IdentityKind, Key, Reference, Storage};
use bowshot_types::declared::{DECLARED, is_kept};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast::{
    self, CheckConstraint, ColumnDef, ColumnOption, ColumnOptionDef, ConstraintCharacteristics, CreateTable,
    Expr as SqlExpr, ForeignKeyConstraint, IndexColumn, TableConstraint, TableFactor,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Columns of a table, as the storage has it: here they are refused before anything is made of them.
const MAX_COLUMNS: usize = 10_000;
/// Bytes of the metadata of a column: coordinate systems have several thousand.
const MAX_METADATA: usize = 64 << 10;
/// CHECKs of a table, and columns that are computed: each is planned, also by every statement that adds rows.
pub(crate) const MAX_CHECKS: usize = 1_000;
/// UNIQUE keys of a table: rows that are added are looked for by each of them.
pub(crate) const MAX_UNIQUE: usize = 100;
/// References of a table to others.
pub(crate) const MAX_REFERENCES: usize = 1_000;

/// See the module.
#[derive(Default)]
pub(super) struct Parts {
    /// By their columns.
    defaults: HashMap<String, String>,
    comments: HashMap<String, String>,
    checks: Vec<Check>,
    primary_key: Option<Key>,
    unique: Vec<Key>,
    identities: Vec<Identity>,
    generated: Vec<Generated>,
    references: Vec<Reference>,
    comment: Option<String>,
    clauses: Option<String>,
}

impl Parts {
    /// Takes these parts out of the statement.
    ///
    /// # Errors
    /// `LimitReached` for more of one kind than a table has.
    pub(super) fn take(create: &mut CreateTable) -> Result<Self> {
        limit(create.columns.len(), MAX_COLUMNS, "columns")?;
        let comment = create.comment.take().map(|comment| match comment {
            ast::CommentDef::WithEq(text) | ast::CommentDef::WithoutEq(text) => text,
        });
        let mut parts = Self { comment, ..Self::default() };
        for column in &mut create.columns {
            parts.take_column(column)?;
        }
        for constraint in std::mem::take(&mut create.constraints) {
            parts.add_constraint(constraint)?;
        }
        Ok(parts)
    }

    fn take_column(&mut self, column: &mut ColumnDef) -> Result<()> {
        let name = ident(&column.name);
        if let Some(numbered) = columns::serial(&column.data_type) {
            column.data_type = numbered;
            self.add_identity(columns::identity(&name, (1, 1), IdentityKind::Serial))?;
            column.options.push(ColumnOptionDef { name: None, option: ColumnOption::NotNull });
        }
        for ColumnOptionDef { name: constraint, option } in std::mem::take(&mut column.options) {
            if let ColumnOption::Null | ColumnOption::NotNull = option {
                column.options.push(ColumnOptionDef { name: constraint, option });
                continue;
            }
            match columns::own(&name, option)? {
                Own::Nothing => {}
                Own::Identity(identity) => {
                    self.add_identity(identity)?;
                    column.options.push(ColumnOptionDef { name: None, option: ColumnOption::NotNull });
                }
                Own::Generated(sql) => {
                    self.generated.push(Generated { column: name.clone(), sql });
                    limit(self.generated.len(), MAX_CHECKS, "computed columns")?;
                }
                Own::Option(option) => self.take_option(&name, constraint, *option)?,
            }
        }
        Ok(())
    }

    fn take_option(
        &mut self,
        name: &str,
        constraint: Option<ast::Ident>,
        option: ColumnOption,
    ) -> Result<()> {
        let alone =
            || Key { name: constraint.as_ref().map(ident), columns: vec![name.to_owned()], comment: None };
        match option {
            ColumnOption::Default(value) => {
                self.defaults.entry(name.to_owned()).or_insert_with(|| value.to_string());
            }
            ColumnOption::Comment(text) => {
                self.comments.entry(name.to_owned()).or_insert(text);
            }
            ColumnOption::PrimaryKey(key) => {
                check_enforced(key.characteristics.as_ref())?;
                self.set_key(alone())?;
            }
            ColumnOption::Unique(key) => {
                check_enforced(key.characteristics.as_ref())?;
                self.add_unique(alone())?;
            }
            ColumnOption::Check(check) => {
                check_holds(&check)?;
                self.add_check(constraint.or(check.name).as_ref(), &check.expr)?;
            }
            ColumnOption::ForeignKey(mut key) => {
                key.columns = vec![ast::Ident::with_quote('"', name)];
                key.name = constraint.or(key.name);
                self.add_reference(&key)?;
            }
            other => return Err(not_enforced(&other.to_string())),
        }
        Ok(())
    }

    fn add_constraint(&mut self, constraint: TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                check_enforced(key.characteristics.as_ref())?;
                self.set_key(named_key(key.name.as_ref(), &key.columns)?)
            }
            TableConstraint::Unique(key) => self.add_unique(unique_key(&key)?),
            TableConstraint::Check(check)
                if check.name.as_ref().is_some_and(|name| name.value == CLAUSES) =>
            {
                if let SqlExpr::Value(value) = check.expr.as_ref() {
                    self.clauses = value.clone().into_string();
                }
                Ok(())
            }
            TableConstraint::Check(check) => {
                check_holds(&check)?;
                self.add_check(check.name.as_ref(), &check.expr)
            }
            TableConstraint::ForeignKey(key) => self.add_reference(&key),
            // What is fast to find is no part of what a table means.
            TableConstraint::Index(_) => Ok(()),
            other => Err(not_enforced(&other.to_string())),
        }
    }

    fn set_key(&mut self, key: Key) -> Result<()> {
        if self.primary_key.is_some() {
            return Err(Error::invalid("a table has one primary key, not two")
                .with_hint("name all of its columns in one `PRIMARY KEY (…)`"));
        }
        self.primary_key = Some(key);
        Ok(())
    }

    fn add_identity(&mut self, identity: Identity) -> Result<()> {
        if self.identities.iter().any(|there| there.column == identity.column) {
            return Err(Error::invalid(format!("column `{}` is numbered twice", identity.column)));
        }
        self.identities.push(identity);
        Ok(())
    }

    fn add_unique(&mut self, key: Key) -> Result<()> {
        self.unique.push(key);
        limit(self.unique.len(), MAX_UNIQUE, "unique keys")
    }

    fn add_check(&mut self, name: Option<&ast::Ident>, expr: &SqlExpr) -> Result<()> {
        let name = name.map_or_else(|| free_name(&self.checks), ident);
        self.checks.push(Check { name, sql: expr.to_string(), comment: None });
        limit(self.checks.len(), MAX_CHECKS, "checks")
    }

    fn add_reference(&mut self, key: &ForeignKeyConstraint) -> Result<()> {
        self.references.push(reference(key)?);
        limit(self.references.len(), MAX_REFERENCES, "references")
    }

    /// The definition of a table with these columns.
    pub(super) fn definition(self, schema: &Schema, has_rows: bool, storage: Storage) -> Result<Definition> {
        let schema = Layout::default().schema(schema);
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut seen = HashSet::new();
        let key = self.primary_key.iter().flat_map(|key| &key.columns);
        let key: HashSet<&str> = key.map(String::as_str).collect();
        for field in schema.fields() {
            if !seen.insert(field.name().as_str()) {
                return Err(Error::invalid(format!("column `{}` is there twice", field.name()))
                    .with_reason(Reason::DuplicateColumn)
                    .with_hint("give the columns different names"));
            }
            // The rows of a query decide nothing about rows to come.
            let nullable = !key.contains(field.name().as_str()) && (field.is_nullable() || has_rows);
            columns.push(self.column(field, nullable, storage)?);
        }
        if columns.is_empty() {
            return Err(Error::invalid("a table needs at least one column"));
        }
        let Self { checks, primary_key, unique, identities, generated, references, comment, clauses, .. } =
            self;
        let mut names = HashSet::new();
        let of_keys = primary_key.iter().chain(&unique).filter_map(|key| key.name.as_deref());
        let mut all = checks.iter().map(|check| check.name.as_str()).chain(of_keys);
        if let Some(twice) = all.find(|name| !names.insert(*name)) {
            return Err(Error::invalid(format!("constraint `{twice}` is there twice"))
                .with_hint("give the constraints different names"));
        }
        let definition = Definition {
            storage,
            columns,
            primary_key,
            unique,
            checks,
            identities,
            generated,
            references,
            comment,
            clauses,
            materialized: None,
        };
        check_columns(&definition)?;
        Ok(definition)
    }

    fn column(&self, field: &Field, nullable: bool, storage: Storage) -> Result<Column> {
        check_column_name(field.name())?;
        let of = |texts: &HashMap<String, String>| texts.get(field.name()).cloned();
        let bytes: usize = field.metadata().iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > MAX_METADATA {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!(
                    "the metadata of column `{}` have {bytes} bytes, more than {MAX_METADATA}",
                    field.name()
                ),
            )
            .with_hint("send the column without them"));
        }
        let plain = Field::new(field.name(), field.data_type().clone(), nullable);
        Ok(Column {
            field: Arc::new(kept_field(storage, &declared(field, plain))?),
            default: of(&self.defaults),
            comment: of(&self.comments),
        })
    }
}

/// A field with what is declared for another one, and with what its metadata say of its values.
pub(crate) fn declared(from: &Field, field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    let told = from.metadata().iter().filter(|(key, value)| *key == DECLARED || is_kept(key, value));
    metadata.extend(told.map(|(key, value)| (key.clone(), value.clone())));
    field.with_metadata(metadata)
}

/// Keys name columns that are there.
fn check_columns(definition: &Definition) -> Result<()> {
    let primary = definition.primary_key.iter().map(|key| ("primary key", key));
    for (kind, key) in primary.chain(definition.unique.iter().map(|key| ("unique key", key))) {
        check_key(definition, kind, key)?;
    }
    check_references(definition)
}

/// References name columns that are there.
pub(crate) fn check_references(definition: &Definition) -> Result<()> {
    let there = column_names(definition);
    for reference in &definition.references {
        if let Some(missing) = reference.columns.iter().find(|column| !there.contains(column.as_str())) {
            return Err(Error::invalid(format!(
                "the foreign key names a column `{missing}` that is not there"
            )));
        }
    }
    Ok(())
}

/// Fails if a key names a column that is not there, or one twice.
pub(crate) fn check_key(definition: &Definition, kind: &str, key: &Key) -> Result<()> {
    let there = column_names(definition);
    let mut seen = HashSet::new();
    for column in &key.columns {
        if !there.contains(column.as_str()) {
            return Err(Error::invalid(format!("the {kind} names a column `{column}` that is not there")));
        }
        if !seen.insert(column) {
            return Err(Error::invalid(format!("the {kind} names column `{column}` twice")));
        }
        let of_key = definition.position(column).and_then(|place| definition.columns.get(place));
        if of_key.is_some_and(|column| has_variants(column.field.data_type())) {
            return Err(Error::unsupported(format!("VARIANT column `{column}` cannot be in the {kind}"))
                .with_hint("its values are not compared; keep what is unique in a column of its own"));
        }
    }
    Ok(())
}

fn column_names(definition: &Definition) -> HashSet<&str> {
    definition.columns.iter().map(|column| column.field.name().as_str()).collect()
}

/// Fails if a table would have more than the most that it has of something.
pub(crate) fn limit(found: usize, most: usize, what: &str) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitReached, format!("a table has at most {most} {what}"))
        .with_hint("split the table, or leave out what it does not need"))
}

/// The key that a constraint is.
pub(crate) fn named_key(name: Option<&ast::Ident>, columns: &[IndexColumn]) -> Result<Key> {
    let columns = columns.iter().map(key_column).collect::<Result<_>>()?;
    Ok(Key { name: name.map(ident), columns, comment: None })
}

/// See [`named_key`].
pub(crate) fn unique_key(key: &ast::UniqueConstraint) -> Result<Key> {
    check_enforced(key.characteristics.as_ref())?;
    if key.nulls_distinct == ast::NullsDistinctOption::NotDistinct {
        return Err(
            Error::unsupported("NULLS NOT DISTINCT is not supported").with_hint("make the columns NOT NULL")
        );
    }
    named_key(key.name.as_ref().or(key.index_name.as_ref()), &key.columns)
}

fn key_column(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        SqlExpr::Identifier(name) => Ok(ident(name)),
        other => Err(Error::invalid(format!("`{other}` is no column of a key"))),
    }
}

/// A reference to rows of another table, of which the user must have said that nobody enforces it.
pub(crate) fn reference(key: &ForeignKeyConstraint) -> Result<Reference> {
    if key.characteristics.as_ref().and_then(|of| of.enforced) != Some(false) {
        return Err(Error::unsupported("foreign keys are not enforced, so they are refused")
            .with_hint("write NOT ENFORCED behind it to keep it as a note"));
    }
    Ok(Reference {
        name: key.name.as_ref().map(ident),
        columns: key.columns.iter().map(ident).collect(),
        table: key.foreign_table.to_string(),
        referred: key.referred_columns.iter().map(ident).collect(),
        on_delete: key.on_delete.map(|action| action.to_string()),
        on_update: key.on_update.map(|action| action.to_string()),
        comment: None,
    })
}

/// Notes the tables that a definition points to, whether they are there or not.
pub(crate) fn note_referred(references: &[Reference], names: &Names) -> Result<()> {
    for reference in references {
        let mut query = bowshot_sql::read_query(&format!("SELECT 1 FROM {}", reference.table))?;
        let from = change::select_of(&mut query)?.from.pop();
        if let Some(TableFactor::Table { name, .. }) = from.map(|from| from.relation) {
            names.pinned.note(&names.resolve(&name)?);
        }
    }
    Ok(())
}

/// A constraint that is there is enforced, and at once.
pub(crate) fn check_enforced(characteristics: Option<&ConstraintCharacteristics>) -> Result<()> {
    let Some(of) = characteristics else { return Ok(()) };
    if of.enforced == Some(false) || of.initially == Some(ast::DeferrableInitial::Deferred) {
        return Err(Error::unsupported(format!("`{of}` is not supported for keys"))
            .with_hint("keys are enforced by each statement"));
    }
    Ok(())
}

/// A CHECK that is there holds for all rows.
pub(crate) fn check_holds(check: &CheckConstraint) -> Result<()> {
    if check.enforced == Some(false) {
        return Err(not_enforced(&check.to_string()));
    }
    Ok(())
}

fn not_enforced(what: &str) -> Error {
    Error::unsupported(format!("`{what}` is not enforced, so it is refused"))
        .with_hint("tables have NOT NULL, DEFAULT, CHECK, UNIQUE and PRIMARY KEY")
}
