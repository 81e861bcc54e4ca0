//! What MySQL's and PostgreSQL's clients ask about server and session: settings, statements that run, rights.

use super::show::{Listing, filtered, filtered_texts};
use super::utility_context::{UtilityContext, quoted};
use bowshot_api::Result;
use bowshot_sql::RowFilter;
use bowshot_system_catalog::client::Flavour;
use datafusion::sql::parser::Statement as Parsed;

/// `SHOW ALL`, with PostgreSQL's columns.
pub(super) fn all(filter: RowFilter, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let settings = asked.settings().into_iter();
    let rows: Vec<_> = settings
        .map(|setting| {
            vec![Some(setting.name.to_owned()), Some(setting.value), Some(setting.text.to_owned())]
        })
        .collect();
    filtered_texts(&["name", "setting", "description"], &rows, filter)
}

/// `SHOW VARIABLES`, with MySQL's columns.
pub(super) fn variables(filter: RowFilter, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let settings = asked.settings().into_iter();
    let mut rows: Vec<_> =
        settings.map(|setting| vec![Some(setting.name.to_owned()), Some(setting.value)]).collect();
    let version = bowshot_system_catalog::functions::version(Flavour::MySql);
    rows.push(vec![Some("version".to_owned()), Some(version)]);
    filtered_texts(&["Variable_name", "Value"], &rows, filter)
}

/// `SHOW STATUS`: counts of the caller's own statements.
pub(super) fn status(filter: RowFilter) -> Result<Parsed> {
    let shown = Listing {
        items: "name AS \"Variable_name\", number AS \"Value\"",
        from: "FROM (SELECT 'Questions' AS name, CAST(count(*) AS VARCHAR) AS number FROM system.queries \
               UNION ALL SELECT 'Tables', CAST(count(*) AS VARCHAR) FROM system.tables) AS counted",
        order: "name",
    };
    filtered(&shown, filter)
}

/// `SHOW WARNINGS`, `SHOW ERRORS`: what a statement says is told at once. MySQL's protocol answers them by itself.
pub(super) fn warnings() -> Result<Parsed> {
    let shown = Listing {
        items: "level AS \"Level\", code AS \"Code\", message AS \"Message\"",
        from: "FROM (SELECT '' AS level, 0 AS code, '' AS message) AS conditions WHERE false",
        order: "level",
    };
    filtered(&shown, RowFilter::All)
}

/// `SHOW GRANTS [FOR user]`: without rules, everybody who may connect may do everything that the server does.
pub(super) fn grants(about: Option<&str>, asked: &UtilityContext<'_>) -> Result<Parsed> {
    let access = &asked.visible.access;
    let user = asked.user();
    if !access.is_off() {
        let user = about.unwrap_or(user);
        let rows = bowshot_system_catalog::system::access::grants_of(access, user)
            .into_iter()
            .map(|line| vec![Some(line)]);
        let rows: Vec<_> = rows.collect();
        return filtered_texts(&[format!("Grants for {user}").as_str()], &rows, RowFilter::All);
    }
    let column = format!("Grants for {user}");
    let grant = format!("GRANT ALL PRIVILEGES ON *.* TO {}", quoted(user));
    filtered_texts(&[column.as_str()], &[vec![Some(grant)]], RowFilter::All)
}

/// `SHOW PROCESSLIST`: the statements of the caller that run, the oldest first.
pub(super) fn processes(filter: RowFilter) -> Result<Parsed> {
    let shown = Listing {
        items: "query_id AS \"Id\", user_name AS \"User\", session_id AS \"Session\", 'Query' AS \"Command\", \
                duration_ms / 1000 AS \"Time\", outcome AS \"State\", statement AS \"Info\"",
        from: "FROM system.queries WHERE outcome NOT IN ('finished', 'failed', 'cancelled')",
        order: "started",
    };
    filtered(&shown, filter)
}

pub(super) fn engines(filter: RowFilter) -> Result<Parsed> {
    let row = ["Bowshot", "DEFAULT", "tables in memory and on disk", "YES", "NO", "YES"];
    let row = row.iter().map(|text| Some((*text).to_owned())).collect();
    filtered_texts(&["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"], &[row], filter)
}

pub(super) fn collations(filter: RowFilter) -> Result<Parsed> {
    let shown = Listing {
        items: "collation_name AS \"Collation\", 'utf8mb4' AS \"Charset\", CAST(46 AS BIGINT) AS \"Id\", \
                'Yes' AS \"Default\", 'Yes' AS \"Compiled\", CAST(1 AS BIGINT) AS \"Sortlen\"",
        from: "FROM information_schema.collations",
        order: "collation_name",
    };
    filtered(&shown, filter)
}

pub(super) fn character_sets(filter: RowFilter) -> Result<Parsed> {
    let row = ["utf8mb4", "UTF-8 Unicode", "utf8mb4_bin", "4"];
    let row = row.iter().map(|text| Some((*text).to_owned())).collect();
    filtered_texts(&["Charset", "Description", "Default collation", "Maxlen"], &[row], filter)
}
