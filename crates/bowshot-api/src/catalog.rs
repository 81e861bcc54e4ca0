//! Catalog metadata: the filters of metadata requests, and the entries that answer them.

use arrow::datatypes::SchemaRef;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableKind {
    /// A stored table.
    Table,
    /// A view.
    View,
    /// A system table.
    System,
}

impl TableKind {
    /// Its name in metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "TABLE",
            Self::View => "VIEW",
            Self::System => "SYSTEM TABLE",
        }
    }

    pub const ALL: [TableKind; 3] = [Self::System, Self::Table, Self::View];

    /// Parses a table type, ignoring case; `BASE TABLE` is `TABLE`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "TABLE" | "BASE TABLE" => Some(Self::Table),
            "VIEW" => Some(Self::View),
            "SYSTEM TABLE" => Some(Self::System),
            _ => None,
        }
    }
}

/// A filter for tables. `None` matches all; patterns are SQL `LIKE` patterns with `%`, `_` and `\` as escape.
#[derive(Debug, Clone, Default)]
pub struct TableFilter {
    /// Exact catalog name; the empty string means tables without a catalog, which do not exist.
    pub catalog: Option<String>,
    pub schema_pattern: Option<String>,
    pub table_pattern: Option<String>,
    /// Kinds to list; `None` for all.
    pub kinds: Option<Vec<TableKind>>,
    /// Whether to fill [`TableEntry::schema`].
    pub include_schema: bool,
}

/// An entry of a table list.
#[derive(Debug, Clone)]
pub struct TableEntry {
    pub catalog: String,
    pub schema_name: String,
    /// Table name.
    pub name: String,
    pub kind: TableKind,
    /// Arrow schema in the session's layout, if asked for and readable.
    pub schema: Option<SchemaRef>,
    /// Remarks; for an unreadable table, the reason.
    pub remarks: Option<String>,
}

/// A table by name; `None` parts take the session's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    pub catalog: Option<String>,
    pub schema_name: Option<String>,
    /// Table name.
    pub name: String,
}

/// The primary key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryKey {
    /// Catalog, schema and name of the table.
    pub table: [String; 3],
    /// Name of the constraint.
    pub name: Option<String>,
    /// Columns in the order of the key.
    pub columns: Vec<String>,
}

/// SQL `LIKE` over whole names: `%` any run, `_` any character, `\` escapes the next. Runs in time proportional to
/// text times pattern, so hostile patterns are harmless.
///
/// Runs in time proportional to text times pattern, so hostile patterns cost nothing special.
///
/// ```
/// use bowshot_api::like;
/// assert!(like("lineitem", "line%"));
/// assert!(like("a_b", r"a\_b") && !like("axb", r"a\_b"));
/// ```
pub fn like(text: &str, pattern: &str) -> bool {
    let tokens = tokens(pattern);
    let text: Vec<char> = text.chars().collect();
    let mut reachable = vec![false; text.len() + 1];
    reachable[0] = true;
    for token in tokens {
        let mut next = vec![false; text.len() + 1];
        match token {
            Token::AnyRun => {
                let mut seen = false;
                for (slot, reached) in next.iter_mut().zip(&reachable) {
                    seen |= *reached;
                    *slot = seen;
                }
            }
            Token::AnyOne => next[1..].copy_from_slice(&reachable[..text.len()]),
            Token::Char(wanted) => {
                for (index, found) in text.iter().enumerate() {
                    next[index + 1] = reachable[index] && *found == wanted;
                }
            }
        }
        reachable = next;
    }
    reachable[text.len()]
}

enum Token {
    AnyRun,
    AnyOne,
    Char(char),
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '%' => Token::AnyRun,
            '_' => Token::AnyOne,
            '\\' => Token::Char(chars.next().unwrap_or('\\')),
            other => Token::Char(other),
        });
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn like_matches_whole_names() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "a%c", true),
            ("abc", "_b_", true),
            ("abc", "b%", false),
            ("100%", r"100\%", true),
            ("1000", r"100\%", false),
            ("größe", "gr__e", true),
            (r"a\", r"a\", true),
        ] {
            assert_eq!(like(text, pattern), expected, "{text:?} like {pattern:?}");
        }
    }
}
