//! What a join computes, as data: its tables and their versions, conditions and outer parts. Equal joins have equal shapes, whatever order
//! and aliases they use. Tables have numbers; conditions are texts in which `#2:"name"` is a column of table 2 and quoted parts are JSON
//! strings. The caller makes sure that equal texts mean the same, and that different values never give equal texts.

use crate::cache::implication;
use crate::cache::sequence::Pattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most numberings of repeated tables that are tried.
const MAX_ORDERS: usize = 24;

/// A name with its catalog and schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct TableName {
    pub(crate) catalog: String,
    pub(crate) schema: String,
    pub(crate) table: String,
}

/// The version of a table's contents. Equal contents mean equal rows and columns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Content {
    /// One of our tables: its id, the number of its last commit, a digest of its columns, and its segments, which are
    /// never changed.
    Own { id: String, version: u64, columns: u64, durable: bool, segments: Vec<u64> },
    /// Files: path, size, times and inode of each are in the version.
    Files { version: String, columns: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct TableKey {
    pub(crate) name: TableName,
    pub(crate) content: Content,
}

/// A column of a numbered table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ColumnRef {
    pub(crate) table: usize,
    pub(crate) column: String,
}

/// A join that keeps or drops rows of the left side without a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum OuterKind {
    Left,
    Full,
    Semi,
    Anti,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Outer {
    pub(crate) kind: OuterKind,
    pub(crate) left: Tree,
    pub(crate) right: Tree,
    pub(crate) on: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Member {
    Table(usize),
    Outer(Box<Outer>),
}

/// The combinations of rows of all members that satisfy all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Tree {
    pub(crate) members: Vec<Member>,
    pub(crate) conditions: Vec<String>,
}

/// A join of exact versions of tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct JoinShape {
    /// In the order of their names; conditions and members use the indexes.
    pub(crate) tables: Vec<TableKey>,
    pub(crate) tree: Tree,
    /// Session settings that change what conditions mean.
    pub(crate) settings: String,
}

/// How a cached join answers another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// For each table of the wanted join, its number in the cached one.
    pub(crate) numbers: Vec<usize>,
    /// Indexes of the conditions that must still be applied.
    pub(crate) missing: Vec<usize>,
}

impl TableName {
    /// The name without the default catalog and schema.
    pub(crate) fn short(&self) -> String {
        match (self.catalog.as_str(), self.schema.as_str()) {
            ("bowshot", "main") => self.table.clone(),
            ("bowshot", schema) => format!("{schema}.{}", self.table),
            (catalog, schema) => format!("{catalog}.{schema}.{}", self.table),
        }
    }
}

/// Names of tables for people.
pub(crate) fn short_names<'a>(names: impl IntoIterator<Item = &'a TableName>) -> String {
    names.into_iter().map(TableName::short).collect::<Vec<_>>().join(", ")
}

impl TableKey {
    /// The part that all versions of a table share; two tables may have the same.
    pub(crate) fn identity(&self) -> &str {
        match &self.content {
            Content::Own { id, .. } => id,
            Content::Files { .. } => &self.name.table,
        }
    }

    /// Whether it is valid after a restart.
    pub(crate) fn is_lasting(&self) -> bool {
        !matches!(self.content, Content::Own { durable: false, .. })
    }
}

impl Tree {
    /// Renumbers the tables, and sorts with [`Tree::sort`].
    #[must_use]
    pub(crate) fn renumbered(&self, numbers: &[usize]) -> Self {
        let members = self.members.iter().map(|member| match member {
            Member::Table(table) => Member::Table(numbers.get(*table).copied().unwrap_or(*table)),
            Member::Outer(outer) => Member::Outer(Box::new(Outer {
                kind: outer.kind,
                left: outer.left.renumbered(numbers),
                right: outer.right.renumbered(numbers),
                on: sorted(outer.on.iter().map(|text| renumber(text, numbers))),
            })),
        });
        let mut tree = Self {
            members: members.collect(),
            conditions: self.conditions.iter().map(|text| renumber(text, numbers)).collect(),
        };
        tree.sort();
        tree
    }

    /// Sorts everything without a fixed order.
    fn sort(&mut self) {
        self.members.sort();
        self.conditions = sorted(std::mem::take(&mut self.conditions).into_iter());
    }

    /// The same without conditions on single tables.
    #[must_use]
    pub(crate) fn without_filters(&self) -> Self {
        let conditions = self.conditions.iter().filter(|text| tables_in(text).len() > 1).cloned();
        Self { members: self.members.clone(), conditions: conditions.collect() }
    }

    /// The conditions on single tables.
    pub(crate) fn filters(&self) -> BTreeSet<String> {
        self.conditions.iter().filter(|text| tables_in(text).len() <= 1).cloned().collect()
    }

    /// Whether it has outer, semi or anti joins.
    pub(crate) fn has_outer(&self) -> bool {
        self.members.iter().any(|member| matches!(member, Member::Outer(_)))
    }
}

impl JoinShape {
    /// A shape from tables in any order. Also returns the new number of each table.
    pub(crate) fn new(tables: Vec<TableKey>, tree: &Tree, settings: String) -> (Self, Vec<usize>) {
        let mut order: Vec<usize> = (0..tables.len()).collect();
        let patterns: Vec<Pattern> = tables.iter().map(|key| Pattern::of(&key.name.table)).collect();
        order.sort_by(|one, other| {
            let key = |at: &usize| {
                (&tables[*at].name.catalog, &tables[*at].name.schema, &patterns[*at], &tables[*at])
            };
            key(one).cmp(&key(other))
        });
        let mut numbers = vec![0; tables.len()];
        for (number, table) in order.iter().enumerate() {
            numbers[*table] = number;
        }
        let keys = order.iter().map(|table| tables[*table].clone()).collect();
        (Self { tables: keys, tree: tree.renumbered(&numbers), settings }, numbers)
    }

    /// A digest of its tables, whatever their versions: the sum of their [`identity_digest`]s.
    pub(crate) fn digest(&self) -> u64 {
        let tables = self.tables.iter().map(|table| identity_digest(table.identity()));
        tables.fold(0, u64::wrapping_add)
    }

    pub(crate) fn names(&self) -> Vec<TableName> {
        self.tables.iter().map(|table| table.name.clone()).collect()
    }

    /// Whether and how `self` answers `wanted`. `conditions` are those of `wanted` in the order to which
    /// the answer refers; the tree's own are sorted.
    pub(crate) fn gives(&self, wanted: &Self, conditions: &[String]) -> Option<Match> {
        if self.tables != wanted.tables || self.settings != wanted.settings {
            return None;
        }
        orders(&wanted.tables).into_iter().find_map(|numbers| {
            let tree = wanted.tree.renumbered(&numbers);
            if tree.members != self.tree.members {
                return None;
            }
            let texts: Vec<String> = conditions.iter().map(|text| renumber(text, &numbers)).collect();
            let fulfilled =
                |there: &String| texts.iter().any(|text| text == there || implication::implies(text, there));
            if !self.tree.conditions.iter().all(fulfilled) {
                return None;
            }
            let missing = texts.iter().enumerate().filter(|(_, text)| !self.tree.conditions.contains(text));
            let missing = missing.map(|(place, _)| place).collect();
            Some(Match { numbers, missing })
        })
    }
}

/// A digest of [`TableKey::identity`]. Different tables may share it.
pub(crate) fn identity_digest(identity: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

fn orders(tables: &[TableKey]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for key in tables {
        let mut longer = Vec::new();
        for order in &all {
            for (number, other) in tables.iter().enumerate() {
                if other == key && !order.contains(&number) && longer.len() < MAX_ORDERS {
                    longer.push(order.iter().copied().chain([number]).collect());
                }
            }
        }
        all = longer;
    }
    all
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.map(|text| turned(&text)).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// An equality with its sides in order: `(bin "=" b a)` is `(bin "=" a b)`.
fn turned(text: &str) -> String {
    let start = "(bin \"=\" ";
    let Some((left, right)) = text.strip_prefix(start).and_then(|rest| sides(rest.strip_suffix(')')?)) else {
        return text.to_owned();
    };
    if left <= right { text.to_owned() } else { format!("{start}{right} {left})") }
}

/// Two operands with one space between them.
fn sides(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b' ' if depth == 0 => return Some((text.get(..at)?, text.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

/// Renumbers the tables in a text, except in quotes.
pub(crate) fn renumber(text: &str, numbers: &[usize]) -> String {
    let mut changed = String::with_capacity(text.len());
    walk(text, |part| match part {
        TextPiece::Table(table) => {
            changed.push('#');
            changed.push_str(&numbers.get(table).copied().unwrap_or(table).to_string());
        }
        TextPiece::Other(text) => changed.push_str(text),
    });
    turned(&changed)
}

/// Numbers of the tables that a condition uses.
pub(crate) fn tables_in(text: &str) -> BTreeSet<usize> {
    let mut tables = BTreeSet::new();
    walk(text, |part| {
        if let TextPiece::Table(table) = part {
            tables.insert(table);
        }
    });
    tables
}

pub(crate) fn columns_in(text: &str) -> Vec<ColumnRef> {
    let (mut columns, mut table) = (Vec::new(), None);
    walk(text, |part| match part {
        TextPiece::Table(number) => table = Some(number),
        TextPiece::Other(rest) => {
            let name = rest
                .strip_prefix(':')
                .map(|rest| serde_json::Deserializer::from_str(rest).into_iter().next());
            if let (Some(table), Some(Some(Ok(column)))) = (table, name) {
                columns.push(ColumnRef { table, column });
            }
        }
    });
    columns
}

enum TextPiece<'a> {
    Table(usize),
    Other(&'a str),
}

fn walk(text: &str, mut take: impl FnMut(TextPiece<'_>)) {
    let (mut quoted, mut escaped, mut copied) = (false, false, 0);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'#' if !quoted => {
                let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                if let Some(Ok(table)) = text.get(at + 1..at + 1 + digits).map(str::parse) {
                    take(TextPiece::Other(text.get(copied..at).unwrap_or_default()));
                    take(TextPiece::Table(table));
                    at += digits;
                    copied = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    take(TextPiece::Other(text.get(copied..).unwrap_or_default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn key(name: &str, version: u64) -> TableKey {
        let name = TableName { catalog: "bowshot".into(), schema: "main".into(), table: name.into() };
        let content = Content::Own {
            id: name.table.clone(),
            version: 0,
            columns: 0,
            durable: true,
            segments: vec![version],
        };
        TableKey { name, content }
    }

    fn flat(tables: usize, conditions: &[&str]) -> Tree {
        Tree {
            members: (0..tables).map(Member::Table).collect(),
            conditions: conditions.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    fn shape(names: &[&str], conditions: &[&str]) -> JoinShape {
        let keys = names.iter().map(|name| key(name, 1)).collect();
        JoinShape::new(keys, &flat(names.len(), conditions), String::new()).0
    }

    #[test]
    fn the_order_of_tables_and_of_the_sides_of_an_equality_does_not_matter() {
        let one = shape(&["a", "b"], &["(bin \"=\" #0:\"k\" #1:\"j\")"]);
        let other = shape(&["b", "a"], &["(bin \"=\" #0:\"j\" #1:\"k\")"]);
        assert_eq!(one, other);
        assert_ne!(one, shape(&["b", "a"], &["(bin \"=\" #0:\"k\" #1:\"j\")"]));
    }

    #[test]
    fn what_is_quoted_is_no_table() {
        let text = "(bin \"=\" #0:\"#1\" (lit \"Utf8\" \"\\\"#0\"))";
        assert_eq!(renumber(text, &[7]), "(bin \"=\" #7:\"#1\" (lit \"Utf8\" \"\\\"#0\"))");
        assert_eq!(tables_in(text), BTreeSet::from([0]));
    }

    #[test]
    fn the_columns_of_a_condition_are_found() {
        let text = "(fn \"f\" #12:\"a \\\"b\" (lit \"Utf8\" \"#3:\") #0:\"c\")";
        let found: Vec<_> = columns_in(text).into_iter().map(|at| (at.table, at.column)).collect();
        assert_eq!(found, [(12, "a \"b".to_owned()), (0, "c".to_owned())]);
    }

    #[test]
    fn stricter_conditions_are_given_with_what_is_missing() {
        let join = "(bin \"=\" #0:\"k\" #1:\"k\")";
        let filter = "(bin \"<\" #0:\"x\" (lit \"Int64\" \"5\"))";
        let there = shape(&["a", "b"], &[join]);
        let wanted = shape(&["a", "b"], &[join, filter]);
        let conditions = [join.to_owned(), filter.to_owned()];
        let found = there.gives(&wanted, &conditions).expect("the wider one gives the narrower one");
        assert_eq!(found, Match { numbers: vec![0, 1], missing: vec![1] });
        assert_eq!(wanted.gives(&there, &[join.to_owned()]), None, "rows are missing");
    }

    #[test]
    fn a_range_gives_a_narrower_one() {
        let join = "(bin \"=\" #0:\"k\" #1:\"k\")";
        let wide = "(bin \"<\" #0:\"x\" (lit \"Int64\" \"50\"))";
        let narrow = "(bin \"<\" #0:\"x\" (lit \"Int64\" \"5\"))";
        let (there, wanted) = (shape(&["a", "b"], &[join, wide]), shape(&["a", "b"], &[join, narrow]));
        let conditions = [join.to_owned(), narrow.to_owned()];
        assert_eq!(there.gives(&wanted, &conditions).map(|found| found.missing), Some(vec![1]));
        assert_eq!(wanted.gives(&there, &[join.to_owned(), wide.to_owned()]), None);
    }

    #[test]
    fn another_version_gives_nothing() {
        let join = "(bin \"=\" #0:\"k\" #1:\"k\")";
        let there = shape(&["a", "b"], &[join]);
        let tree = flat(2, &[join]);
        let (newer, _) = JoinShape::new(vec![key("a", 1), key("b", 2)], &tree, String::new());
        assert_eq!(there.gives(&newer, &[join.to_owned()]), None);
    }

    #[test]
    fn self_joins_are_found_under_either_numbering() {
        let one = "(bin \"=\" #0:\"k\" #1:\"parent\")";
        let other = "(bin \"=\" #0:\"parent\" #1:\"k\")";
        let there = shape(&["a", "a"], &[one]);
        let wanted = shape(&["a", "a"], &[other]);
        let found = there.gives(&wanted, &[other.to_owned()]).expect("the same join");
        assert_eq!(found.numbers, vec![1, 0]);
        assert!(found.missing.is_empty());
    }
}
