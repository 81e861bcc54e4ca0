//! The access rules of a server, from one statement on `system.access_rules`.

use super::file::{OPTION, ObjectPath, Policy, Rights, User, add};
use anyhow::{Context, Result, anyhow};
use arrow::array::{Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use bowshot_flight::client::Client;
use futures::TryStreamExt;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) user: String,
    /// Catalog and schema of unqualified names.
    pub(super) place: [String; 2],
    pub(super) roles: BTreeSet<String>,
    pub(super) users: BTreeMap<String, User>,
    pub(super) memberships: BTreeSet<(String, String)>,
    /// Rights granted by owners and administrators.
    pub(super) grants: BTreeMap<(ObjectPath, String), Rights>,
    pub(super) handed_on: BTreeMap<(ObjectPath, String), Rights>,
    pub(super) policies: BTreeMap<(ObjectPath, String), Policy>,
    pub(super) masks: BTreeMap<(ObjectPath, String), Policy>,
}

impl State {
    pub(super) async fn read(client: &Client) -> Result<Self> {
        let about = ask(client, "SELECT current_user, current_catalog, current_schema").await?;
        let [user, catalog, schema] = about
            .into_iter()
            .next()
            .and_then(|row| <[String; 3]>::try_from(row).ok())
            .context("the server does not return the default catalog and schema")?;
        let mut state = Self { user, place: [catalog, schema], ..Self::default() };
        let rules = ask(client, "SELECT kind, definition FROM system.access_rules").await;
        for row in rules
            .context("access rules are readable by admins only, on a server with users and a data folder")?
        {
            let [kind, definition] =
                <[String; 2]>::try_from(row).map_err(|_| anyhow!("a rule is not complete"))?;
            let rule: Value = serde_json::from_str(&definition).context("a rule is not valid JSON")?;
            state
                .add(&kind, &rule)
                .with_context(|| format!("this program does not know the rule `{definition}`"))?;
        }
        Ok(state)
    }

    fn add(&mut self, kind: &str, rule: &Value) -> Option<()> {
        let text = |name: &str| rule.get(name)?.as_str().map(str::to_owned);
        match kind {
            "role" => drop(self.roles.insert(text("name")?)),
            "user" => {
                let attributes = rule.get("attributes")?.as_object()?.iter();
                let attributes =
                    attributes.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                let user = User {
                    admin: rule.get("admin")?.as_bool()?,
                    attributes: attributes.collect::<Option<_>>()?,
                };
                self.users.insert(text("name")?, user);
            }
            "membership" => drop(self.memberships.insert((text("role")?, text("member")?))),
            "grant" => {
                let mut all = Rights::new();
                for (section, suffix) in [("rights", ""), ("options", OPTION)] {
                    for (right, columns) in
                        rule.get(section).into_iter().filter_map(Value::as_object).flatten()
                    {
                        let columns = if columns.is_null() { None } else { Some(texts(columns)?) };
                        all.insert(format!("{right}{suffix}"), columns);
                    }
                }
                let at = (place(rule)?, text("grantee")?);
                match rule.get("grantor") {
                    None => drop(self.grants.insert(at, all)),
                    Some(_) => {
                        let there = self.handed_on.entry(at).or_default();
                        all.into_iter().for_each(|(right, columns)| add(there, right, columns));
                    }
                }
            }
            "policy" => {
                let column = match rule.get("column")? {
                    Value::Null => None,
                    column => Some(column.as_str()?.to_owned()),
                };
                let all = if column.is_some() { &mut self.masks } else { &mut self.policies };
                let policy = Policy { column, roles: texts(rule.get("roles")?)?, using: text("using")? };
                all.insert((place(rule)?, text("name")?), policy);
            }
            _ => return None,
        }
        Some(())
    }
}

fn place(rule: &Value) -> Option<ObjectPath> {
    rule.get("place")?.as_array()?.iter().map(|part| part.as_str().map(str::to_owned)).collect()
}

fn texts(list: &Value) -> Option<BTreeSet<String>> {
    list.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Runs a statement; returns its rows as texts.
pub(super) async fn ask(client: &Client, sql: &str) -> Result<Vec<Vec<String>>> {
    let query = client.execute(sql).await?;
    let mut batches = query.batches();
    let mut rows = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| cast(column, &DataType::Utf8)).collect::<Result<_, _>>()?;
        let columns: Option<Vec<&StringArray>> =
            columns.iter().map(|column| column.as_any().downcast_ref()).collect();
        let columns = columns.context("the server's answer is not text")?;
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column.value(row).to_owned()).collect::<Vec<_>>()),
        );
    }
    Ok(rows)
}
