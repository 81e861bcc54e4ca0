//! The columns that rules name, in tables whose files spell them in letters of any case. Another file may come first and change
//! the spelling, or have two columns of which the others have one.

use bowshot_policy::access::Limits;
use bowshot_tables::Entry;
use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::Expr;
use std::collections::{BTreeMap, HashMap};

/// Where the names of a table's columns are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// The definition of the table.
    Declared,
    /// Files and other databases.
    AnyCase,
}

impl Spelling {
    pub(crate) fn of(entry: Option<&Entry>) -> Self {
        if matches!(entry, Some(Entry::Table(_))) { Self::Declared } else { Self::AnyCase }
    }
}

pub(super) const SEVERAL: &str = "several columns differ from one of a rule in case alone";

pub(super) struct Names<'a> {
    spelling: Spelling,
    /// The names of columns; none for several.
    by_key: HashMap<String, Option<&'a str>>,
}

impl<'a> Names<'a> {
    pub(super) fn of(schema: &'a Schema, spelling: Spelling) -> Self {
        let mut names = Self { spelling, by_key: HashMap::new() };
        for field in schema.fields() {
            let key = names.key(field.name());
            let found = names.by_key.entry(key).and_modify(|known| *known = None);
            found.or_insert(Some(field.name().as_str()));
        }
        names
    }

    fn key(&self, name: &str) -> String {
        match self.spelling {
            Spelling::Declared => name.to_owned(),
            Spelling::AnyCase => name.to_lowercase(),
        }
    }

    fn find(&self, name: &str) -> Result<Option<&'a str>, &'static str> {
        match self.by_key.get(&self.key(name)) {
            None => Ok(None),
            Some(Some(column)) => Ok(Some(*column)),
            Some(None) => Err(SEVERAL),
        }
    }

    /// The limits under the names that the columns have now.
    ///
    /// # Errors
    /// Why they cannot be kept.
    pub(super) fn limits(&self, limits: &Limits) -> Result<Limits, &'static str> {
        let mut masks: BTreeMap<String, String> = BTreeMap::new();
        for (column, mask) in &limits.masks {
            let name = self.find(column)?.ok_or("a mask names a column that the table does not have")?;
            let known = masks.entry(name.to_owned()).or_insert_with(|| mask.clone());
            // Of several masks nobody can say which hides more.
            if *known != *mask {
                "null".clone_into(known);
            }
        }
        let mut limits = Limits { masks, ..limits.clone() };
        if let Some(columns) = &mut limits.columns {
            let found = columns.iter().filter_map(|column| self.find(column).transpose());
            *columns = found.map(|name| name.map(str::to_owned)).collect::<Result<_, _>>()?;
        }
        Ok(limits)
    }

    /// Whether each name in an expression is that of one column.
    pub(super) fn are_clear(&self, expr: &Expr) -> bool {
        expr.column_refs().into_iter().all(|column| self.find(&column.name).is_ok())
    }
}
