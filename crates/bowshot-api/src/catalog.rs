//! Catalog metadata: the filters of metadata requests, and the entries that answer them.

use arrow::datatypes::SchemaRef;

/// The kind of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableKind {
    /// Rows in storage.
    Table,
    /// A named query.
    View,
    /// A table about the server itself.
    System,
}

impl TableKind {
    /// The name that metadata answers use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "TABLE",
            Self::View => "VIEW",
            Self::System => "SYSTEM TABLE",
        }
    }

    /// All kinds, by name.
    pub const ALL: [TableKind; 3] = [Self::System, Self::Table, Self::View];

    /// Reads a table type as clients write it: any case, `BASE TABLE` for `TABLE`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "TABLE" | "BASE TABLE" => Some(Self::Table),
            "VIEW" => Some(Self::View),
            "SYSTEM TABLE" => Some(Self::System),
            _ => None,
        }
    }
}

/// Which tables to list. `None` means any; patterns are SQL `LIKE` patterns with `%`, `_` and `\` as escape.
#[derive(Debug, Clone, Default)]
pub struct TableFilter {
    /// Exact catalog name; the empty string means "those without a catalog", of which there are none.
    pub catalog: Option<String>,
    /// Pattern for the schema name.
    pub schema_pattern: Option<String>,
    /// Pattern for the table name.
    pub table_pattern: Option<String>,
    /// Kinds to list; `None` for all.
    pub kinds: Option<Vec<TableKind>>,
    /// Whether to fill [`TableEntry::schema`].
    pub include_schema: bool,
}

/// One table as the metadata commands list it.
#[derive(Debug, Clone)]
pub struct TableEntry {
    /// Catalog name.
    pub catalog: String,
    /// Schema name.
    pub schema_name: String,
    /// Table name.
    pub name: String,
    /// Kind.
    pub kind: TableKind,
    /// Arrow schema as queries return it (already in the session's layout), if it was asked for and can be read.
    pub schema: Option<SchemaRef>,
    /// Remarks; for a table that cannot be read, why.
    pub remarks: Option<String>,
}

/// A table by name; `None` parts take the session's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// Catalog name.
    pub catalog: Option<String>,
    /// Schema name.
    pub schema_name: Option<String>,
    /// Table name.
    pub name: String,
}

/// The primary key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryKey {
    /// Where the table was found: catalog, schema, name.
    pub table: [String; 3],
    /// Name of the constraint.
    pub name: Option<String>,
    /// Columns in the order of the key.
    pub columns: Vec<String>,
}

/// SQL `LIKE` over whole names: `%` any run, `_` any one character, `\` escapes the next.
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
