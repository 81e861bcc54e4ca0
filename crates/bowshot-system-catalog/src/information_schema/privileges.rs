//! Rights on tables and their columns, as the standard has them: those of the roles of who asks, and all on what is theirs. A
//! right on a schema or a catalog is one on each table in it, and who owns a table has all rights on it.

use crate::CatalogView;
use crate::information_schema::tables::{full, yes};
use crate::lazy_table::{Cell, Defined, Make, Rows, tables};
use crate::listing::{About, Listed, What};
use crate::system::access::{Right, rights};
use bowshot_sql::Privilege;
use datafusion::error::Result;
use futures::future::BoxFuture;

/// Rights that tables have, and those that columns have.
const OF_TABLES: [Privilege; 4] =
    [Privilege::Select, Privilege::Insert, Privilege::Update, Privilege::Delete];
const OF_COLUMNS: [Privilege; 3] = [Privilege::Select, Privilege::Insert, Privilege::Update];

pub(crate) static TABLES: &[Defined] = tables! {
    table_privileges: grantor Text, grantee Text, table_catalog Text, table_schema Text, table_name Text,
        privilege_type Text, is_grantable Text, with_hierarchy Text => Make::Now(of_tables);
    column_privileges: grantor Text, grantee Text, table_catalog Text, table_schema Text, table_name Text,
        column_name Text, privilege_type Text, is_grantable Text => Make::Later(of_columns);
};

/// The rights on one table, and which of them each gives.
fn on<'a>(
    listed: &Listed,
    all: &'a [Right],
    kinds: &'static [Privilege],
) -> impl Iterator<Item = (&'a Right, Privilege)> {
    // What the server tells about itself, nobody grants.
    let all: &'a [Right] = if matches!(listed.what, What::System | What::Standard) { &[] } else { all };
    let name = [listed.name.catalog.clone(), listed.name.schema.clone(), listed.name.name.clone()];
    let there = all.iter().filter(move |right| name.starts_with(&right.place));
    there.flat_map(move |right| {
        let given =
            kinds.iter().filter(move |kind| right.privilege == **kind || right.privilege == Privilege::Own);
        given.map(move |kind| (right, *kind))
    })
}

fn begin(listed: &Listed, right: &Right) -> Vec<Cell> {
    let mut cells = vec![right.grantor.clone().into(), right.grantee.clone().into()];
    cells.extend(full(listed));
    cells
}

fn of_tables(visible: &CatalogView, about: &About, rows: &mut Rows) {
    let all = rights(&visible.access);
    for listed in visible.listed(about) {
        for (right, kind) in on(&listed, &all, &OF_TABLES).filter(|(right, _)| right.columns.is_none()) {
            let mut cells = begin(&listed, right);
            cells.extend([kind.as_str().into(), yes(right.grantable), yes(kind == Privilege::Select)]);
            rows.add(cells);
        }
    }
}

fn of_columns<'a>(
    visible: &'a CatalogView,
    about: &'a About,
    rows: &'a mut Rows,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let all = rights(&visible.access);
        for listed in visible.listed(about) {
            let mut here = on(&listed, &all, &OF_COLUMNS).peekable();
            if here.peek().is_none() {
                continue;
            }
            // What is not seen of a table is not told; who has a right on a column by its name knows it.
            let seen = visible.columns_of(&listed).await;
            let seen: Vec<String> = seen
                .map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect())
                .unwrap_or_default();
            for (right, kind) in here {
                let named: Vec<&String> = match &right.columns {
                    None => seen.iter().collect(),
                    Some(columns) => columns.iter().collect(),
                };
                for column in named {
                    let mut cells = begin(&listed, right);
                    cells.extend([column.into(), kind.as_str().into(), yes(right.grantable)]);
                    rows.add(cells);
                }
            }
        }
        Ok(())
    })
}
