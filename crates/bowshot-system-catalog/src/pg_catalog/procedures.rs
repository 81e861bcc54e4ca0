//! Functions, by their names: what built-in ones take and give depends on what they are called with.

use crate::CatalogView;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, Rows, cells, replace, tables};
use crate::listing::About;
use crate::pg_catalog::oids;
use crate::sql_functions;
use bowshot_policy::FunctionNote;
use bowshot_tables::EntryName;

/// Number of the schema of what is built in, and of its language.
const PG_CATALOG: i64 = 11;
const INTERNAL: i64 = 12;
/// Number of the language of functions that SQL has made.
const SQL: i64 = 14;
/// Number of the type of anything.
const ANY: i64 = 2276;

pub(crate) static TABLES: &[Defined] = tables! {
    pg_proc: oid Long, proname Text, pronamespace Long, proowner Long, prolang Long, procost Long,
        prorows Long, provariadic Long, prokind Text, prosecdef Bool, proleakproof Bool, proisstrict Bool,
        proretset Bool, provolatile Text, proparallel Text, pronargs Short, pronargdefaults Short,
        prorettype Long, proargtypes Oids, prosupport Text, proallargtypes Longs, proargmodes Texts,
        proargnames Texts, proargdefaults Text, protrftypes Longs, prosrc Text, probin Text,
        prosqlbody Text, proconfig Texts, proacl Texts => Now(procedures);
};

fn procedures(visible: &CatalogView, _: &About, rows: &mut Rows) {
    let state = visible.context.state();
    let of_types = crate::pg_catalog::types::functions();
    let mut named: Vec<(&String, &str)> = of_types.iter().map(|name| (name, "f")).collect();
    named.extend(state.scalar_functions().keys().map(|name| (name, "f")));
    named.extend(state.aggregate_functions().keys().map(|name| (name, "a")));
    named.extend(state.window_functions().keys().map(|name| (name, "w")));
    // Those that stand for forms of statements are nobody's to call.
    named.retain(|(name, _)| !name.starts_with("__"));
    named.sort_unstable();
    // What is an aggregate and a function of windows as well is the former.
    named.dedup_by(|second, first| second.0 == first.0);
    for (name, kind) in named {
        rows.add(procedure(name, kind));
    }
    let (current, _) = visible.default_names();
    for (name, note) in sql_functions::seen(&visible.pinned, &visible.access) {
        if name.catalog == current {
            rows.add(sql_function(&name, &note));
        }
    }
}

fn procedure(name: &str, kind: &str) -> Vec<Cell> {
    let mut cells = Vec::from(cells![oids::function(name), name, PG_CATALOG, oids::OWNER, INTERNAL, 1, 0]);
    // It takes any number of anything.
    cells.extend(cells![ANY, kind, false, false, false, false, "s", "s", 1, 0, ANY]);
    cells.extend([Cell::Numbers(vec![ANY]), "-".into()]);
    cells.extend([const { Cell::Null }; 5]);
    cells.push(name.into());
    cells
}

/// A function of SQL: its types are known by name alone, and read as those of anything.
fn sql_function(name: &EntryName, note: &FunctionNote) -> Vec<Cell> {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let defaults = note.parameters.iter().filter(|parameter| parameter.default.is_some()).count();
    let names = note.parameters.iter().map(|parameter| Some(parameter.name.clone())).collect();
    let mut cells = procedure(&name.name, "f");
    let changes = [
        (0, Cell::from(oids::sql_function(name))),
        (2, oids::schema(&name.catalog, &name.schema).into()),
        (4, SQL.into()),
        (7, 0.into()),
        (12, note.gives_rows().into()),
        (13, note.volatility.letter().into()),
        (15, count(note.parameters.len()).into()),
        (16, count(defaults).into()),
        (18, Cell::Numbers(note.parameters.iter().map(|_| ANY).collect())),
        (22, Cell::Texts(names)),
        (25, note.body.as_str().into()),
    ];
    replace(&mut cells, changes);
    cells
}
