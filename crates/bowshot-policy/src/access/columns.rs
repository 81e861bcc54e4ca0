//! Rights on single columns, as PostgreSQL means them: a statement needs its right on each column that it gives a value; one that
//! gives none a value needs the right on any column. A right on the table is one on all columns.

use super::{Access, Reading, denied, verb};
use crate::grants;
use crate::rules::{Policy, place_of};
use bowshot_api::{Error, Result};
use bowshot_sql::Privilege;
use bowshot_tables::EntryName;
use std::collections::BTreeSet;

/// What a statement does to the rows of a table, as far as rights tell it apart. Columns are those that it gives values; what gets
/// its default is none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    pub inserts: Option<BTreeSet<String>>,
    pub updates: Option<BTreeSet<String>>,
    pub deletes: bool,
}

impl Touched {
    /// Rows are added.
    pub fn inserting(columns: BTreeSet<String>) -> Self {
        Self { inserts: Some(columns), ..Self::default() }
    }

    /// Rows are changed.
    pub fn updating(columns: BTreeSet<String>) -> Self {
        Self { updates: Some(columns), ..Self::default() }
    }
}

impl Access {
    /// Whether the rights suffice for all that a statement does to rows.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_touched(&self, name: &EntryName, touched: &Touched) -> Result<()> {
        if touched.deletes {
            self.check(Privilege::Delete, name)?;
        }
        let parts = [(Privilege::Insert, &touched.inserts), (Privilege::Update, &touched.updates)];
        for (privilege, columns) in parts {
            if let Some(columns) = columns {
                self.check_columns(privilege, name, columns)?;
            }
        }
        Ok(())
    }

    /// Whether there is the right on each of these columns; on any column, if there are none.
    ///
    /// # Errors
    /// As [`Self::check`]. Columns that are not there are refused like those without a right.
    pub fn check_columns(
        &self,
        privilege: Privilege,
        name: &EntryName,
        columns: &BTreeSet<String>,
    ) -> Result<()> {
        if self.may_table(privilege, name) {
            return Ok(());
        }
        let Some(Some(given)) = self.given(privilege, &place_of(name)) else {
            return Err(self.refused(privilege, name));
        };
        match columns.iter().find(|column| !given.contains(*column)) {
            None => Ok(()),
            Some(column) => Err(self.refused_column(privilege, name, column)),
        }
    }

    /// Whether there is the right on the table, or on any column of it: for who does not know the columns yet.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_any_column(&self, privilege: Privilege, name: &EntryName) -> Result<()> {
        self.check_columns(privilege, name, &BTreeSet::new())
    }

    /// Whether the right may be handed on, on all of a table or on these columns.
    pub fn may_hand_on(
        &self,
        privilege: Privilege,
        name: &EntryName,
        columns: Option<&BTreeSet<String>>,
    ) -> bool {
        let (place, rules) = (place_of(name), self.rules());
        let held = rules.options.get(&place).into_iter().flatten();
        self.owns(&place)
            || held
                .filter(|(of, _)| self.has_role(of))
                .any(|(_, given)| grants::has(given, privilege, columns))
    }

    /// The columns that the rights to a table name, whatever they are for; `None` where one is on the table.
    pub(super) fn columns_of_rights(&self, name: &EntryName) -> Option<BTreeSet<String>> {
        let place = place_of(name);
        let mut named = BTreeSet::new();
        for privilege in [Privilege::Select, Privilege::Insert, Privilege::Update, Privilege::Delete] {
            if let Some(columns) = self.given(privilege, &place) {
                named.extend(columns?);
            }
        }
        Some(named)
    }

    /// Refuses who sees a part of a table; `filters_fit` tells whether that may be a part of the rows.
    ///
    /// # Errors
    /// `Denied` with the reason.
    pub fn check_part(&self, name: &EntryName, filters_fit: bool, reason: &str) -> Result<()> {
        match self.reading(name) {
            Reading::All => Ok(()),
            Reading::Limited(limits) if filters_fit && !limits.hides_values() => Ok(()),
            Reading::Limited(_) => {
                Err(denied(&format!("`{}` sees a part of `{name}` only, and {reason}", self.user()))
                    .with_hint("ask its owner"))
            }
            Reading::Denied | Reading::Unseen => Err(self.refused(Privilege::Select, name)),
        }
    }

    /// Whether new rows may be held against those that are there, seen or not.
    ///
    /// # Errors
    /// `Denied` for who does not see all of the table.
    pub fn check_merged(&self, name: &EntryName) -> Result<()> {
        self.check_part(name, false, "the statement could match hidden rows")
    }

    /// Whether a statement may return the rows that it changes.
    ///
    /// # Errors
    /// `Denied` for who does not see all columns of them.
    pub fn check_returned(&self, name: &EntryName) -> Result<()> {
        self.check_part(name, true, "RETURNING would show hidden values")
    }

    /// Whether somebody who does not own a thing may give others the right to read it. Policies are for roles: whom one hides
    /// something from could give it to who has no such role.
    ///
    /// # Errors
    /// `Denied` where a policy hides rows or values of it, or of anything in it, from who gives.
    pub fn check_hand_on(&self, place: &[String]) -> Result<()> {
        let rules = self.rules();
        let inside = rules.policies.iter().filter(|(at, _)| at.starts_with(place) && !self.owns(at));
        let hides = |policy: &Policy| policy.column.is_none() || self.is_mine(policy);
        if !inside.flat_map(|(_, policies)| policies).any(hides) {
            return Ok(());
        }
        let message = format!("a policy hides a part of `{}` from `{}`", place.join("."), self.user());
        Err(denied(&format!("{message}, who therefore may not grant the right to read it"))
            .with_hint("its owner or an admin can grant it"))
    }

    fn refused_column(&self, privilege: Privilege, name: &EntryName, column: &str) -> Error {
        let (user, right) = (self.user(), privilege.as_str());
        let verb = match privilege {
            Privilege::Insert => "give new rows a value in",
            Privilege::Update => "change",
            _ => verb(privilege),
        };
        denied(&format!("`{user}` may not {verb} column `{column}` of `{name}`"))
            .with_hint(format!("its owner or an admin can run `GRANT {right} ({column}) ON {name} TO …`"))
    }

    /// An error about a column that is not there, which lists those that are: for who does not see all of them, without the list.
    pub fn told_of_columns(&self, name: &EntryName, error: Error) -> Error {
        let is_of_column = error.reason() == Some(bowshot_api::Reason::UndefinedColumn);
        if is_of_column && self.check_whole(name).is_err() {
            return error.with_hint("`information_schema.columns` lists those that you may read");
        }
        error
    }
}
