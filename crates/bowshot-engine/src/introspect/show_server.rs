//! What MySQL's and PostgreSQL's clients ask about server and session: settings, statements that run, rights.

use super::asked::{Asked, quoted};
use super::parse::Words;
use super::show::{Shown, Wanted, filtered, filtered_texts, wanted};
use bowshot_api::Result;
use bowshot_system_catalog::client::Flavour;
use datafusion::sql::parser::Statement as Parsed;

/// `SHOW ALL`, with PostgreSQL's columns.
pub(super) fn all(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let settings = asked.settings().into_iter();
    let rows: Vec<_> = settings
        .map(|setting| {
            vec![Some(setting.name.to_owned()), Some(setting.value), Some(setting.text.to_owned())]
        })
        .collect();
    filtered_texts(&["name", "setting", "description"], &rows, wanted)
}

/// `SHOW VARIABLES`, with MySQL's columns.
pub(super) fn variables(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let settings = asked.settings().into_iter();
    let mut rows: Vec<_> =
        settings.map(|setting| vec![Some(setting.name.to_owned()), Some(setting.value)]).collect();
    let version = bowshot_system_catalog::functions::version(Flavour::MySql);
    rows.push(vec![Some("version".to_owned()), Some(version)]);
    filtered_texts(&["Variable_name", "Value"], &rows, wanted)
}

/// `SHOW STATUS`: counts of the caller's own statements.
pub(super) fn status(mut words: Words<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let shown = Shown {
        items: "name AS \"Variable_name\", number AS \"Value\"",
        from: "FROM (SELECT 'Questions' AS name, CAST(count(*) AS VARCHAR) AS number FROM system.queries \
               UNION ALL SELECT 'Tables', CAST(count(*) AS VARCHAR) FROM system.tables) AS counted",
        order: "name",
    };
    filtered(&shown, wanted)
}

/// `SHOW WARNINGS`, `SHOW ERRORS`: what a statement says is told at once. MySQL's protocol answers them by itself.
pub(super) fn warnings(mut words: Words<'_>) -> Result<Parsed> {
    if words.take("limit") {
        while !words.at_end() {
            words.token();
        }
    }
    words.end()?;
    let shown = Shown {
        items: "level AS \"Level\", code AS \"Code\", message AS \"Message\"",
        from: "FROM (SELECT '' AS level, 0 AS code, '' AS message) AS conditions WHERE false",
        order: "level",
    };
    filtered(&shown, Wanted::All)
}

/// `SHOW GRANTS [FOR user]`: without rules, everybody who may connect may do everything that the server does.
pub(super) fn grants(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Parsed> {
    let access = &asked.visible.access;
    let mut about = None;
    if words.take("for") {
        // `CURRENT_USER`, `CURRENT_USER()`: who asks. A quoted name is as it is written, and what is behind it is a host.
        if !words.take("current_user") {
            about = words.string().or_else(|| {
                let name = words.name().ok()?;
                Some(crate::catalog::names::ident(name.0.last()?.as_ident()?))
            });
        }
        while !words.at_end() {
            words.token();
        }
    }
    words.end()?;
    let user = asked.user();
    if !access.is_off() {
        let user = about.as_deref().unwrap_or(user);
        let rows = bowshot_system_catalog::system::access::grants_of(access, user)
            .into_iter()
            .map(|line| vec![Some(line)]);
        let rows: Vec<_> = rows.collect();
        return filtered_texts(&[format!("Grants for {user}").as_str()], &rows, Wanted::All);
    }
    let column = format!("Grants for {user}");
    let grant = format!("GRANT ALL PRIVILEGES ON *.* TO {}", quoted(user));
    filtered_texts(&[column.as_str()], &[vec![Some(grant)]], Wanted::All)
}

/// `SHOW PROCESSLIST`: the statements of the caller that run, the oldest first.
pub(super) fn processes(mut words: Words<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let shown = Shown {
        items: "query_id AS \"Id\", user_name AS \"User\", session_id AS \"Session\", 'Query' AS \"Command\", \
                duration_ms / 1000 AS \"Time\", outcome AS \"State\", statement AS \"Info\"",
        from: "FROM system.queries WHERE outcome NOT IN ('finished', 'failed', 'cancelled')",
        order: "started",
    };
    filtered(&shown, wanted)
}

pub(super) fn engines(mut words: Words<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let row = ["Bowshot", "DEFAULT", "tables in memory and on disk", "YES", "NO", "YES"];
    let row = row.iter().map(|text| Some((*text).to_owned())).collect();
    filtered_texts(&["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"], &[row], wanted)
}

pub(super) fn collations(mut words: Words<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let shown = Shown {
        items: "collation_name AS \"Collation\", 'utf8mb4' AS \"Charset\", CAST(46 AS BIGINT) AS \"Id\", \
                'Yes' AS \"Default\", 'Yes' AS \"Compiled\", CAST(1 AS BIGINT) AS \"Sortlen\"",
        from: "FROM information_schema.collations",
        order: "collation_name",
    };
    filtered(&shown, wanted)
}

pub(super) fn character_sets(mut words: Words<'_>) -> Result<Parsed> {
    let wanted = wanted(&mut words)?;
    let row = ["utf8mb4", "UTF-8 Unicode", "utf8mb4_bin", "4"];
    let row = row.iter().map(|text| Some((*text).to_owned())).collect();
    filtered_texts(&["Charset", "Description", "Default collation", "Maxlen"], &[row], wanted)
}
