//! Calls that the planner cannot take as they are written: named members of structs, functions that give rows, where a value
//! would rank, and lambdas that have to hold for all elements.

use super::{json_constructors, records, whole_rows};
use crate::calls::{self, argument, cloned_values};
use crate::dialect::DialectName;
use crate::literal::is_placeholder;
use crate::template::{self, meaning};
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Select, SelectItem,
    TableAlias, TableAliasColumnDef, TableFactor, UnaryOperator, Value, VisitorMut,
};
use std::ops::ControlFlow;

pub(super) fn rewrite(statement: &mut impl Tree, dialect: DialectName) -> Result<()> {
    statement.try_walk(&mut Functions(dialect))
}

/// Functions that give a row for each element of the list that another one gives. The other one has another name, so that
/// a call which was rewritten is not once more.
const ROWS: [(&str, &str); 18] = [
    ("explode", ""),
    ("json_array_elements", "json_elements"),
    ("json_array_elements_text", "json_elements_text"),
    ("json_each", "json_members"),
    ("json_each_text", "json_members_text"),
    ("json_object_keys", "json_keys"),
    ("jsonb_array_elements", "json_elements"),
    ("jsonb_array_elements_text", "json_elements_text"),
    ("jsonb_each", "json_members"),
    ("jsonb_each_text", "json_members_text"),
    ("jsonb_object_keys", "json_keys"),
    ("jsonb_path_query", "json_path_query"),
    ("generate_subscripts", "list_subscripts"),
    ("generate_series", "list_series"),
    ("range", "range"),
    ("regexp_matches", "regexp_match_groups"),
    ("regexp_split_to_table", "regexp_split_to_array"),
    ("string_to_table", "string_to_array"),
];

/// Those whose rows have the columns `key` and `value`.
const PAIRS: [&str; 4] = ["json_each", "json_each_text", "jsonb_each", "jsonb_each_text"];

/// Functions that give JSONB, which the functions of JSON beside them write otherwise.
const NORMAL: [&str; 8] = [
    "jsonb_agg",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_object_agg",
    "jsonb_strip_nulls",
    "to_jsonb",
];

/// The function whose list has the rows of that one.
fn list_of(name: &str) -> Option<&'static str> {
    ROWS.iter().find(|(known, _)| *known == name).map(|(_, list)| *list)
}

struct Functions(DialectName);

impl VisitorMut for Functions {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                as_row(expr);
                if let Some(rows) = series_of_moments(expr) {
                    *expr = rows;
                }
            }
        }
        let tables = select.from.iter_mut();
        let factors = tables.flat_map(|table| {
            std::iter::once(&mut table.relation).chain(table.joins.iter_mut().map(|join| &mut join.relation))
        });
        for factor in factors {
            if let Err(error) = records::typed(factor).and_then(|()| rows_of(factor, self.0)) {
                return ControlFlow::Break(error);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Cast { expr: row, .. } = &mut *expr {
            as_row(row);
        }
        let Expr::Function(function) = &mut *expr else { return ControlFlow::Continue(()) };
        let Some(name) = name_of(&function.name) else { return ControlFlow::Continue(()) };
        if let Some(row) = rows_as_values(function, &name) {
            *expr = row;
            return ControlFlow::Continue(());
        }
        match name.as_str() {
            "struct_pack" | "struct_insert" | "struct_update" => members_by_name(function),
            "json_array" | "json_object" => {
                if let Some(made) = json_constructors::plain(function, &name, self.0) {
                    *expr = made;
                }
            }
            "array_map" => lambda_last(function),
            "make_interval" => in_places(function, &INTERVAL_PARTS),
            "rank" | "dense_rank" | "percent_rank" | "cume_dist" if !function.within_group.is_empty() => {
                function.name = ObjectName::from(vec![Ident::new(format!("hypothetical_{name}"))]);
            }
            "all_match" | "array_all_match" | "list_all_match" | "none_match" => {
                if let Some(all) = of_any(function, name != "none_match") {
                    *expr = all;
                }
            }
            "sha224" | "sha256" | "sha384" | "sha512" if self.0 == DialectName::Postgres => {
                match hash_of_bytes(function, &name) {
                    Ok(Some(hash)) => *expr = hash,
                    Ok(None) => {}
                    Err(error) => return ControlFlow::Break(error),
                }
            }
            "digest" => match sha1_digest(function) {
                Ok(Some(hash)) => *expr = hash,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            },
            // Lists and truths in DuckDB, rows in PostgreSQL.
            "generate_series" | "regexp_matches" if self.0 != DialectName::Postgres => {}
            "range" => {}
            name if NORMAL.contains(&name) => *expr = records::normal(expr),
            _ => {
                if let Some(list) = list_of(&name)
                    && function.over.is_none()
                {
                    *expr = unnested(function, list);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// `(a, b)` as a value is `row(a, b)`.
fn as_row(expr: &mut Expr) {
    if let Expr::Tuple(values) = expr
        && values.len() > 1
    {
        *expr = calls::call("row", std::mem::take(values));
    }
}

/// Functions of which `f(t.*)` is of the whole row.
const OF_ROWS: [&str; 8] =
    ["array_agg", "array_to_json", "json_agg", "jsonb_agg", "row", "row_to_json", "to_json", "to_jsonb"];

/// Rows among the arguments of a call; `row(t.*)` is nothing but one.
fn rows_as_values(function: &mut Function, name: &str) -> Option<Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let alone = list.args.len() == 1;
    for argument in &mut list.args {
        let FunctionArg::Unnamed(given) = argument else { continue };
        match given {
            FunctionArgExpr::Expr(value) => as_row(value),
            FunctionArgExpr::QualifiedWildcard(table) if OF_ROWS.contains(&name) => {
                let row = whole_rows::written(table)?;
                if alone && name == "row" {
                    return Some(row);
                }
                *given = FunctionArgExpr::Expr(row);
            }
            _ => {}
        }
    }
    None
}

/// PostgreSQL's `sha256(b)` takes and gives bytes, where the other dialects give hexadecimal digits.
fn hash_of_bytes(function: &Function, algorithm: &str) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(bytes))] = list.args.as_slice() else { return Ok(None) };
    template::expression(&format!("digest(CAST(b AS BYTEA), '{algorithm}')"), &[("b", bytes)]).map(Some)
}

/// `digest(b, 'sha1')`, an algorithm that the planner's function lacks.
fn sha1_digest(function: &Function) -> Result<Option<Expr>> {
    match calls::arguments(function).as_deref() {
        Some([bytes, Expr::Value(name)]) if matches!(&name.value, Value::SingleQuotedString(name) if name == "sha1") => {
            template::expression("unhex(sha1(b))", &[("b", *bytes)]).map(Some)
        }
        _ => Ok(None),
    }
}

/// `array_map(x -> x + 1, l)` of Doris and StarRocks is `array_transform(l, x -> x + 1)`.
fn lambda_last(function: &mut Function) {
    if let FunctionArguments::List(list) = &mut function.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Lambda(_))), _] = list.args.as_slice()
    {
        list.args.swap(0, 1);
    }
    function.name = ObjectName::from(vec![Ident::new("array_transform")]);
}

fn name_of(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(meaning),
        _ => None,
    }
}

fn text(name: &str) -> FunctionArg {
    argument(Expr::value(Value::SingleQuotedString(name.to_owned())))
}

/// `struct_insert(s, b := 2)` is `struct_insert(s, 'b', 2)`.
fn members_by_name(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let mut arguments = Vec::with_capacity(2 * list.args.len());
    for argument in std::mem::take(&mut list.args) {
        match argument {
            FunctionArg::Named { name, arg, .. } => {
                arguments.extend([text(&meaning(&name)), FunctionArg::Unnamed(arg)]);
            }
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                arguments.extend([text(&meaning(&name)), FunctionArg::Unnamed(arg)]);
            }
            other => arguments.push(other),
        }
    }
    list.args = arguments;
}

/// The parameters of `make_interval`.
const INTERVAL_PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// `make_interval(days => 3)` is `make_interval(0, 0, 0, 3)`: what is left out is nothing.
fn in_places(function: &mut Function, names: &[&str]) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let mut places: Vec<Option<FunctionArgExpr>> = vec![None; names.len()];
    for (at, argument) in list.args.iter().enumerate() {
        let (name, value) = match argument {
            FunctionArg::Named { name, arg, .. }
            | FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (Some(meaning(name)), arg),
            FunctionArg::Unnamed(arg) => (None, arg),
            FunctionArg::ExprNamed { .. } => return,
        };
        let place = name.map_or(Some(at), |name| names.iter().position(|known| *known == name));
        match place.and_then(|place| places.get_mut(place)) {
            Some(free) if free.is_none() => *free = Some(value.clone()),
            // The function itself says what is wrong.
            _ => return,
        }
    }
    let count = places.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let zero = || FunctionArgExpr::Expr(Expr::value(Value::Number("0".to_owned(), false)));
    list.args = places
        .into_iter()
        .take(count)
        .map(|place| FunctionArg::Unnamed(place.unwrap_or_else(zero)))
        .collect();
}

fn renamed(function: &Function, name: &str) -> Function {
    let mut function = function.clone();
    function.name = ObjectName::from(vec![Ident::new(name)]);
    function
}

/// The function under `unnest`.
fn unnested(function: &Function, list: &str) -> Expr {
    if list.is_empty() {
        return Expr::Function(renamed(function, "unnest"));
    }
    let inner = Expr::Function(renamed(function, list));
    let mut outer = renamed(function, "unnest");
    outer.filter = None;
    if let FunctionArguments::List(arguments) = &mut outer.args {
        arguments.args = vec![argument(inner)];
    }
    Expr::Function(outer)
}

/// `SELECT generate_series(a, b, INTERVAL '1 day')`: rows in every dialect, as in PostgreSQL; it is the usual way to write days.
fn series_of_moments(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let step = list.args.get(2);
    let of_moments = matches!(step, Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Interval(_)))));
    (of_moments && name_of(&function.name)? == "generate_series").then(|| unnested(function, "list_series"))
}

/// `none_match(l, x -> p)` is `NOT any_match(l, x -> p)`, and `all_match(l, x -> p)` is `NOT any_match(l, x -> NOT p)`.
fn of_any(function: &Function, all: bool) -> Option<Expr> {
    let mut any = renamed(function, "any_match");
    let FunctionArguments::List(list) = &mut any.args else { return None };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Lambda(lambda)))) = list.args.last_mut() else {
        return None;
    };
    if all {
        let body = std::mem::replace(lambda.body.as_mut(), Expr::value(Value::Null));
        *lambda.body = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(body))) };
    }
    let any = Expr::Nested(Box::new(Expr::Function(any)));
    Some(Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) })))
}

/// `FROM t, json_each(t.j)`: a function that gives rows, of columns beside it. One of constants is a table of its own, whose
/// alias names its column, too.
fn rows_of(factor: &mut TableFactor, dialect: DialectName) -> Result<()> {
    if let Some(unnest) = lateral_unnest(factor) {
        *factor = unnest;
        return Ok(());
    }
    let (name, arguments, alias, counted) = match factor {
        TableFactor::Table { name, args: Some(arguments), alias, with_ordinality, .. } => {
            (name_of(name), arguments.args.as_slice(), alias, *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (name_of(name), args.as_slice(), alias, *with_ordinality)
        }
        _ => return Ok(()),
    };
    let Some((name, list)) = name.and_then(|name| list_of(&name).map(|list| (name, list))) else {
        return Ok(());
    };
    if name == "regexp_matches" && dialect != DialectName::Postgres {
        return Ok(());
    }
    let pairs = PAIRS.contains(&name.as_str());
    let Some(values) = cloned_values(arguments) else { return Ok(()) };
    let constant = !values.iter().any(|value| super::joins::has_column(value) || has_parameter(value));
    if constant && !counted && list != "explode" && is_table(&name) {
        if !pairs && name != "range" {
            name_column(alias);
        }
        return Ok(());
    }
    let alias = alias.take().or_else(|| Some(alias_of(&name)));
    *factor = if pairs {
        of_pairs(&name, &values, alias, counted)?
    } else {
        of_list(&name, list, &values, alias, counted)?
    };
    Ok(())
}

/// Whether the value is known only when the statement runs.
fn has_parameter(value: &Expr) -> bool {
    value.has_expression(is_placeholder)
}

/// `LATERAL unnest(t.l)`, which the parser takes for a call like any other.
fn lateral_unnest(factor: &TableFactor) -> Option<TableFactor> {
    let TableFactor::Function { name, args, alias, with_ordinality, .. } = factor else { return None };
    if name_of(name)? != "unnest" {
        return None;
    }
    Some(TableFactor::UNNEST {
        alias: alias.clone(),
        array_exprs: cloned_values(args)?,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: *with_ordinality,
    })
}

/// Whether the planner has a table function of that name.
fn is_table(name: &str) -> bool {
    !matches!(
        name,
        "explode" | "generate_subscripts" | "regexp_matches" | "regexp_split_to_table" | "string_to_table"
    )
}

fn alias_of(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

fn name_column(alias: &mut Option<TableAlias>) {
    if let Some(alias) = alias
        && alias.columns.is_empty()
    {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// The call of the list's function, from holes named `__value_0` and so on.
fn call(list: &str, values: &[Expr]) -> (String, Vec<(String, Expr)>) {
    let holes: Vec<(String, Expr)> =
        values.iter().enumerate().map(|(at, value)| (format!("__value_{at}"), value.clone())).collect();
    let names: Vec<&str> = holes.iter().map(|(name, _)| name.as_str()).collect();
    (format!("{list}({})", names.join(", ")), holes)
}

fn of_list(
    name: &str,
    list: &str,
    values: &[Expr],
    mut alias: Option<TableAlias>,
    counted: bool,
) -> Result<TableFactor> {
    let (text, holes) = call(list, values);
    let holes: Vec<(&str, &Expr)> = holes.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let elements = match values {
        [only] if list.is_empty() => only.clone(),
        _ => template::expression(&text, &holes)?,
    };
    if !counted && name != "range" {
        name_column(&mut alias);
    }
    Ok(TableFactor::UNNEST {
        alias,
        array_exprs: vec![elements],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: counted,
    })
}

/// Keys and values side by side: a query two levels below could not see the tables beside it.
fn of_pairs(name: &str, values: &[Expr], alias: Option<TableAlias>, counted: bool) -> Result<TableFactor> {
    let shown = if name.ends_with("_text") { "json_member_texts" } else { "json_member_values" };
    let mut array_exprs = Vec::with_capacity(2);
    for list in ["json_member_keys", shown] {
        let (text, holes) = call(list, values);
        let holes: Vec<(&str, &Expr)> = holes.iter().map(|(name, value)| (name.as_str(), value)).collect();
        array_exprs.push(template::expression(&text, &holes)?);
    }
    let mut alias = alias.unwrap_or_else(|| alias_of(name));
    if alias.columns.is_empty() && !counted {
        let column = |name| TableAliasColumnDef { name: Ident::new(name), data_type: None };
        alias.columns = vec![column("key"), column("value")];
    }
    Ok(TableFactor::UNNEST {
        alias: Some(alias),
        array_exprs,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: counted,
    })
}
