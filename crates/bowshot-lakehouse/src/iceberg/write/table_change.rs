//! A change of a table that adds no rows, as a catalog is asked for it.

use super::ref_change::{RefChange, ReferenceChange};
use super::schema_change::{ColumnChange, SchemaChange};
use super::spec_change::{PartitionChange, SpecChange};
use super::table_state::TableState;
use bowshot_api::Result;
use serde_json::Value;

#[derive(Debug, Clone)]
pub enum TableAlteration {
    Columns(Vec<ColumnChange>),
    Partition(PartitionChange),
    Reference(ReferenceChange),
}

#[derive(Debug)]
pub(in super::super) enum TableChange {
    Schema(SchemaChange),
    Spec(SpecChange),
    Reference(RefChange),
}

impl TableChange {
    /// `None` where all is as it is to be.
    pub(in super::super) fn new(
        state: &TableState,
        table: (&[String], &str),
        alteration: &TableAlteration,
    ) -> Result<Option<Self>> {
        Ok(match alteration {
            TableAlteration::Columns(changes) => SchemaChange::new(state, table, changes)?.map(Self::Schema),
            TableAlteration::Partition(change) => Some(Self::Spec(SpecChange::new(state, table, change)?)),
            TableAlteration::Reference(change) => RefChange::new(state, table, change)?.map(Self::Reference),
        })
    }

    pub(in super::super) fn request(&self) -> &Value {
        match self {
            Self::Schema(SchemaChange { request, .. })
            | Self::Spec(SpecChange { request, .. })
            | Self::Reference(RefChange { request, .. }) => request,
        }
    }

    /// Whether a state is so, whoever has made it.
    pub(in super::super) fn is_in(&self, state: &TableState) -> bool {
        match self {
            Self::Schema(change) => change.is_in(state),
            Self::Spec(change) => change.is_in(state),
            Self::Reference(change) => change.is_in(state),
        }
    }
}
