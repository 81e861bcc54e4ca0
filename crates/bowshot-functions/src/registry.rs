//! Every function by area: what is registered, and what `docs/reference/sql.md` says about it.

use crate::define::{Body, Defined, Function};
use datafusion::common::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::ScalarUDF;
use std::sync::Arc;

/// The areas in the order of the documentation, each with its functions.
const AREAS: &[(&str, &[&[Function]])] = &[
    ("Aggregates", crate::aggregate::FUNCTIONS),
    ("Conditions and types", &[crate::condition::FUNCTIONS]),
    ("Dates and times", crate::date::FUNCTIONS),
    ("JSON and VARIANT", crate::json::FUNCTIONS),
    ("Lists, maps and structs", crate::nested::FUNCTIONS),
    ("Numbers", crate::number::FUNCTIONS),
    ("Strings", crate::text::FUNCTIONS),
    ("Tables", crate::table::FUNCTIONS),
    ("Windows", crate::window::FUNCTIONS),
];

fn functions() -> impl Iterator<Item = &'static Function> {
    AREAS.iter().flat_map(|(_, groups)| groups.iter().flat_map(|group| group.iter()))
}

/// Adds all functions to the state that sessions are made of; ours replace DataFusion's of the same name.
pub fn register(state: &mut SessionState) -> Result<()> {
    for clock in crate::date::clocks() {
        state.register_udf(Arc::new(clock))?;
    }
    // Further names of DataFusion's functions first: a function of ours may have one of the names that they have.
    for function in functions() {
        if let Body::Stock(name) = function.body {
            rename(state, name, function.aliases)?;
        }
    }
    for function in functions() {
        match function.body {
            Body::Scalar(_) | Body::Rewrite(_) => {
                if let Some(defined) = Defined::new(function)? {
                    state.register_udf(Arc::new(ScalarUDF::new_from_impl(defined)))?;
                }
            }
            Body::Udf(make) => {
                let made = make().as_ref().clone().with_aliases(function.aliases.iter().copied());
                state.register_udf(Arc::new(made))?;
            }
            Body::Aggregate(make) => {
                let made = make();
                // Functions with further names lose their accumulators of sliding frames in DataFusion 55.2.
                let named = match function.aliases {
                    [] => made,
                    aliases => Arc::new(made.as_ref().clone().with_aliases(aliases.iter().copied())),
                };
                state.register_udaf(named)?;
            }
            Body::Window(make) => {
                state.register_udwf(make())?;
            }
            Body::Stock(_) | Body::Listed => {}
        }
    }
    for function in crate::nested::with_lambdas() {
        state.register_higher_order_function(function)?;
    }
    for (name, function) in crate::table::functions() {
        state.register_udtf(name, function);
    }
    Ok(())
}

/// Gives further names to a function that DataFusion has; one that it lacks is none of ours to make up.
fn rename(state: &mut SessionState, name: &str, aliases: &'static [&'static str]) -> Result<()> {
    if aliases.is_empty() {
        return Ok(());
    }
    if let Ok(known) = state.udf(name) {
        state.register_udf(Arc::new(known.as_ref().clone().with_aliases(aliases.iter().copied())))?;
    } else if let Ok(known) = state.udaf(name) {
        state.register_udaf(Arc::new(known.as_ref().clone().with_aliases(aliases.iter().copied())))?;
    }
    if let Ok(known) = state.higher_order_function(name) {
        let named = known.as_ref().clone().with_aliases(aliases.iter().copied());
        state.register_higher_order_function(Arc::new(named))?;
    }
    // `first_value` and its like are aggregates and functions of windows.
    if let Ok(known) = state.udwf(name) {
        state.register_udwf(Arc::new(known.as_ref().clone().with_aliases(aliases.iter().copied())))?;
    }
    Ok(())
}

/// The part about functions of `docs/reference/sql.md`.
pub fn page() -> String {
    let mut page = String::new();
    for (area, groups) in AREAS {
        page.push_str(&format!("\n### {area}\n\n| function | other names | gives |\n|---|---|---|\n"));
        let mut rows: Vec<&Function> = groups.iter().flat_map(|group| group.iter()).collect();
        rows.sort_by_key(|function| function.name);
        for function in rows {
            page.push_str(&line(function));
        }
    }
    page
}

fn line(function: &Function) -> String {
    let aliases: Vec<String> = function.aliases.iter().map(|alias| format!("`{alias}`")).collect();
    let about = function.about.replace('|', "\\|");
    let note = function.note.replace('|', "\\|");
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    format!("| `{}` | {} | {about}{note} |\n", function.name, aliases.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_name_stands_once_in_the_table() {
        let mut seen = HashSet::new();
        for function in functions() {
            for name in std::iter::once(&function.name).chain(function.aliases) {
                // A name may stand for values and for tables.
                let listed = matches!(function.body, Body::Listed);
                assert!(seen.insert((*name, listed)), "`{name}` stands twice in the table");
                assert_eq!(*name, name.to_lowercase(), "names are in lower case");
            }
        }
    }
}
