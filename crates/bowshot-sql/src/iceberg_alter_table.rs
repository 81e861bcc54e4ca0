//! `ALTER TABLE t ADD | DROP PARTITION FIELD bucket(16, id)` and `ALTER TABLE t CREATE | DROP BRANCH | TAG b`, of tables in a lake: how
//! rows are partitioned from now on, and names of states.

use crate::partitions::PartitionField;
use crate::statement_tokens::StatementTokens;
use bowshot_api::Result;
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;

/// A change of the partition fields, branches or tags of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutStatement {
    pub table: ObjectName,
    /// Whether the table may be unknown.
    pub if_exists: bool,
    pub change: LayoutChange,
}

/// One change of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutChange {
    /// Rows that are added from now on are partitioned by one more value, which may have a name.
    AddPartition {
        field: PartitionField,
        name: Option<String>,
    },
    /// They are partitioned by one less; a column alone may be the name of one.
    DropPartition(PartitionField),
    /// Names a state: the current one, or that of a number.
    CreateReference {
        kind: ReferenceKind,
        name: String,
        version: Option<u64>,
        if_not_exists: bool,
    },
    DropReference {
        kind: ReferenceKind,
        name: String,
        if_exists: bool,
    },
}

/// What the name of a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    Branch,
    Tag,
}

/// A name has at most three parts, with points between them, behind IF EXISTS.
const LONGEST_NAME: usize = 7;
const FORM: &str = "write `ALTER TABLE table ADD PARTITION FIELD bucket(16, column)`, `… DROP PARTITION FIELD column`, \
                    `… CREATE BRANCH name`, `… CREATE TAG name AS OF VERSION 123` or `… DROP TAG name`";

/// Whether one of these statements stands here.
pub(crate) fn begins(words: &StatementTokens<'_>) -> bool {
    let is_one = |at: usize, of: &[&str]| of.iter().any(|word| words.is_at(at, word));
    let begins_at = |at: usize| {
        let fields =
            is_one(at, &["add", "drop"]) && words.is_at(at + 1, "partition") && words.is_at(at + 2, "field");
        // Else `tag` is a column that is dropped.
        let is_named = !matches!(words.token_at(at + 2), Token::EOF | Token::SemiColon | Token::Comma)
            && !is_one(at + 2, &["cascade", "restrict"]);
        fields || is_one(at, &["create", "drop"]) && is_one(at + 1, &["branch", "tag"]) && is_named
    };
    words.is_at(0, "alter") && words.is_at(1, "table") && (3..4 + LONGEST_NAME).any(begins_at)
}

/// Reads a statement that [begins](begins) so.
pub(crate) fn read(mut words: StatementTokens<'_>) -> Result<LayoutStatement> {
    words.take_all(&["alter", "table"]);
    let if_exists = words.take_all(&["if", "exists"]);
    let table = words.name()?;
    let change = change(&mut words)?;
    words.end().map_err(|error| error.with_hint(FORM))?;
    Ok(LayoutStatement { table, if_exists, change })
}

fn change(words: &mut StatementTokens<'_>) -> Result<LayoutChange> {
    if words.take_all(&["add", "partition", "field"]) {
        let field = PartitionField::read(&words.expression()?)?;
        let name = if words.take("as") { Some(words.single()?) } else { None };
        return Ok(LayoutChange::AddPartition { field, name });
    }
    if words.take_all(&["drop", "partition", "field"]) {
        return Ok(LayoutChange::DropPartition(PartitionField::read(&words.expression()?)?));
    }
    let is_new = words.take("create");
    if !is_new && !words.take("drop") {
        return Err(words.unexpected().with_hint(FORM));
    }
    let kind = if words.take("branch") { ReferenceKind::Branch } else { ReferenceKind::Tag };
    if kind == ReferenceKind::Tag && !words.take("tag") {
        return Err(words.unexpected().with_hint(FORM));
    }
    if !is_new {
        let if_exists = words.take_all(&["if", "exists"]);
        return Ok(LayoutChange::DropReference { kind, name: words.single()?, if_exists });
    }
    let if_not_exists = words.take_all(&["if", "not", "exists"]);
    let name = words.single()?;
    let version = match words.take_all(&["as", "of", "version"]) {
        true => Some(words.number().ok_or_else(|| words.unexpected().with_hint(FORM))?),
        false => None,
    };
    Ok(LayoutChange::CreateReference { kind, name, version, if_not_exists })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintenance::MaintenanceStatement;
    use crate::parse::read_one;
    use crate::partitions::PartitionTransform;
    use crate::statement::Statement;

    fn change(sql: &str) -> LayoutChange {
        match read_one(&format!("ALTER TABLE a.b.c {sql}")) {
            Ok(Statement::Maintenance(MaintenanceStatement::Layout(statement))) => statement.change,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn changes_are_read() {
        let field = |column: &str, transform| PartitionField { column: column.to_owned(), transform };
        let bucket = field("id", PartitionTransform::Bucket(16));
        let added = |name: Option<&str>| LayoutChange::AddPartition {
            field: bucket.clone(),
            name: name.map(str::to_owned),
        };
        assert_eq!(change("ADD PARTITION FIELD bucket(16, id)"), added(None));
        assert_eq!(change("ADD PARTITION FIELD bucket(16, id) AS shard"), added(Some("shard")));
        let dropped = LayoutChange::DropPartition(field("shard", PartitionTransform::Identity));
        assert_eq!(change("DROP PARTITION FIELD shard"), dropped);
        let tag = |version, if_not_exists| LayoutChange::CreateReference {
            kind: ReferenceKind::Tag,
            name: "v1".to_owned(),
            version,
            if_not_exists,
        };
        assert_eq!(change("CREATE TAG v1"), tag(None, false));
        assert_eq!(change("CREATE TAG IF NOT EXISTS v1 AS OF VERSION 7"), tag(Some(7), true));
        let (kind, name) = (ReferenceKind::Branch, "dev".to_owned());
        assert_eq!(
            change("DROP BRANCH IF EXISTS dev"),
            LayoutChange::DropReference { kind, name, if_exists: true }
        );
        for sql in
            ["ALTER TABLE t DROP tag", "ALTER TABLE t DROP branch CASCADE", "ALTER TABLE t ADD tag INT"]
        {
            assert!(matches!(read_one(sql), Ok(Statement::Sql(_))), "{sql}");
        }
        for sql in ["ADD PARTITION FIELD id + 1", "CREATE TAG v1 AS OF VERSION x", "CREATE TAG v1 v2"] {
            assert!(read_one(&format!("ALTER TABLE t {sql}")).is_err(), "{sql}");
        }
    }
}
