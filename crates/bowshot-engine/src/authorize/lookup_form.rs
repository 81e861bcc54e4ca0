//! What is known of a plan that asks for the rows with one key: it is found out once, and serves the plan on other rows and with
//! other literals.

use bowshot_api::Layout;
use bowshot_tables::Table;
use bowshot_types::result_metadata::unbound_schema;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A value that a lookup has in its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LookupValue {
    /// The literal of this number, in the order of the conditions.
    Literal(usize),
    /// The parameter of this name.
    Parameter(String),
}

/// How many rows are wanted of the one that there is at most.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowLimit {
    Any,
    /// One or more.
    NotZero,
    /// As many as the parameter of this name says.
    Parameter(String),
}

/// The columns, keys and literals of a plan that is a lookup by key.
#[derive(Debug)]
pub(crate) struct LookupForm {
    /// Places in the table of the columns of the result.
    pub(crate) columns: Vec<usize>,
    /// The columns of the key by their places, each with its value.
    pub(crate) key: Vec<(usize, LookupValue)>,
    pub(crate) limit: RowLimit,
    /// Types of the parameters.
    pub(crate) parameters: HashMap<String, Option<FieldRef>>,
    /// See [`AuthorizedPlan::tables`](super::AuthorizedPlan::tables).
    pub(crate) tables: OnceLock<Arc<[(String, bool)]>>,
    /// The schema of the rows, in the layout that was asked for first.
    schema: OnceLock<(Layout, SchemaRef)>,
}

impl LookupForm {
    pub(crate) fn new(
        columns: Vec<usize>,
        key: Vec<(usize, LookupValue)>,
        limit: RowLimit,
        parameters: HashMap<String, Option<FieldRef>>,
    ) -> Self {
        let (tables, schema) = (OnceLock::new(), OnceLock::new());
        Self { columns, key, limit, parameters, tables, schema }
    }

    /// The schema of the rows. `plan` is one of this form.
    pub(crate) fn schema(&self, plan: &LogicalPlan, layout: Layout) -> SchemaRef {
        let (made_for, schema) = self.schema.get_or_init(|| (layout, unbound_schema(plan, layout)));
        if *made_for == layout { SchemaRef::clone(schema) } else { unbound_schema(plan, layout) }
    }
}

/// The table and the literals of one lookup, whose plan is made late.
#[derive(Debug)]
pub(crate) struct BoundLookup {
    pub(crate) table: Arc<Table>,
    pub(crate) literals: Vec<ScalarValue>,
}
