//! Statements about access, as they are written.

use super::*;
use crate::Statement;
use crate::parse::read_one;

fn read(sql: &str) -> Result<Option<AccessStatement>> {
    Ok(match read_one(sql)? {
        Statement::Access(statement) => Some(*statement),
        _ => None,
    })
}

#[test]
fn statements_of_other_rooms_are_left_alone() {
    for sql in [
        "SELECT 1",
        "CREATE TABLE role (a INT)",
        "CREATE TABLE mask AS SELECT 1",
        "DROP TABLE \"user\"",
        "DROP TABLE row",
        "CREATE VIEW grant_view AS SELECT 1",
    ] {
        assert_eq!(read(sql).expect(sql), None, "{sql}");
    }
}

#[test]
fn tokens() {
    let made = |user: Option<&str>, expires| {
        let user = user.map(str::to_owned);
        Some(AccessStatement::CreateToken { name: "t".to_owned(), user, expires })
    };
    let days = |days: u64| Expiry::After(Duration::from_secs(days * 24 * 60 * 60));
    for (sql, expected) in [
        ("CREATE TOKEN t", made(None, Expiry::Usual)),
        ("create token T FOR \"Ada\" EXPIRES NEVER;", made(Some("Ada"), Expiry::Never)),
        ("CREATE TOKEN t EXPIRES '1 day'", made(None, days(1))),
        ("CREATE TOKEN t EXPIRES IN '2 weeks'", made(None, days(14))),
        (
            "DROP TOKEN IF EXISTS t FOR bob",
            Some(AccessStatement::DropToken {
                name: "t".to_owned(),
                user: Some("bob".to_owned()),
                if_exists: true,
            }),
        ),
    ] {
        assert_eq!(read(sql).expect(sql), expected, "{sql}");
    }
    for sql in ["CREATE TOKEN", "CREATE TOKEN t EXPIRES", "CREATE TOKEN t EXPIRES '0 days'", "DROP TOKEN t x"]
    {
        assert_eq!(read(sql).expect_err(sql).kind(), ErrorKind::Syntax, "{sql}");
    }
}

#[test]
fn rights_and_roles_are_told_apart() {
    let statement = read("GRANT SELECT (a, \"B\"), INSERT ON TABLE s.t TO ROLE r, \"U\";").expect("parses");
    let Some(AccessStatement::Rights {
        give: true,
        privileges,
        object: Object::Table(table),
        grantees,
        option: false,
        ..
    }) = statement
    else {
        panic!("{statement:?}")
    };
    assert_eq!(
        privileges,
        [(Privilege::Select, vec!["a".to_owned(), "B".to_owned()]), (Privilege::Insert, Vec::new())]
    );
    assert_eq!(
        (table.to_string().as_str(), grantees.as_slice()),
        ("s.t", ["r".to_owned(), "U".to_owned()].as_slice())
    );
    for (sql, roles, members) in [
        ("GRANT analyst TO ada", "analyst", "ada"),
        ("REVOKE ROLE own FROM USER ada", "own", "ada"),
        ("GRANT own TO ada", "own", "ada"),
        ("GRANT 'a b' TO 'c'", "a b", "c"),
    ] {
        match read(sql).expect(sql) {
            Some(AccessStatement::Membership { roles: found, members: to, .. }) => {
                assert_eq!((found.join(","), to.join(",")), (roles.to_owned(), members.to_owned()), "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn rights_on_tables_to_come() {
    let sql = "ALTER DEFAULT PRIVILEGES FOR USER ada IN SCHEMA a, b.c GRANT SELECT, INSERT ON TABLES TO r, s";
    let Ok(Some(AccessStatement::DefaultRights { give: true, privileges, users, schemas, grantees })) =
        read(sql)
    else {
        panic!("{:?}", read(sql))
    };
    assert_eq!(privileges, [Privilege::Select, Privilege::Insert]);
    assert_eq!((users.len(), schemas.len(), grantees.len()), (1, 2, 2));
    let sql = "alter default privileges revoke all on tables from r";
    assert!(
        matches!(read(sql), Ok(Some(AccessStatement::DefaultRights { give: false, ref privileges, ref users, ref schemas, .. }))
            if privileges.len() == 7 && users.is_empty() && schemas.is_empty())
    );
    for sql in [
        "ALTER DEFAULT PRIVILEGES",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT (a) ON TABLES TO r",
        "ALTER DEFAULT PRIVILEGES GRANT r TO s",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON SCHEMAS TO r",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA GRANT SELECT ON TABLES TO r",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES FROM r",
    ] {
        assert_eq!(read(sql).expect_err(sql).kind(), ErrorKind::Syntax, "{sql}");
    }
}

#[test]
fn attributes_come_and_go() {
    let sql = "ALTER USER u NOADMIN SET a = 'x', b = 'y' RESET c, \"D\"";
    let Ok(Some(AccessStatement::User { attributes, admin: Some(false), .. })) = read(sql) else {
        panic!("{:?}", read(sql))
    };
    let shown: Vec<_> = attributes.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    assert_eq!(shown, [("a", Some("x")), ("b", Some("y")), ("c", None), ("D", None)]);
}

#[test]
fn policies_and_masks() {
    let sql = "CREATE ROW POLICY p ON t FOR a, b USING (region = user_attribute('region'))";
    assert!(
        matches!(read(sql), Ok(Some(AccessStatement::CreatePolicy { column: None, ref roles, .. })) if roles.len() == 2)
    );
    let sql = "CREATE MASK m ON t (ssn) USING (partial(0, 4))";
    assert!(matches!(read(sql), Ok(Some(AccessStatement::CreatePolicy { column: Some(_), .. }))));
    for sql in [
        "CREATE ROW POLICY p ON t USING region = 1",
        "CREATE MASK m ON t USING (null)",
        "GRANT SELECT ON t",
        "GRANT SELECT TO",
        "GRANT DELETE (a) ON t TO r",
        "GRANT UPDATE () ON t TO r",
        "GRANT UPDATE (a) ON SCHEMA s TO r",
        "GRANT SELECT ON t TO r CASCADE",
        "GRANT r TO s WITH GRANT OPTION",
        "REVOKE SELECT ON t FROM r WITH GRANT OPTION",
        "REVOKE GRANT OPTION FOR r FROM s",
        "REVOKE SELECT ON t FROM r CASCADE RESTRICT",
        "ALTER TABLE t OWNER TO",
        "ALTER TABLE t OWNER TO a, b",
        "CREATE ROLE",
        "GRANT SELECT ON t TO r EXTRA",
    ] {
        assert_eq!(read(sql).expect_err(sql).kind(), ErrorKind::Syntax, "{sql}");
    }
}

#[test]
fn passwords_do_not_come_back() {
    for sql in ["CREATE USER u PASSWORD 'a' hunter2", "ALTER USER u PASSWORD 'a' 'hunter2'"] {
        let error = read(sql).expect_err(sql);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn rights_on_columns_and_the_option_to_hand_them_on() {
    let read = |sql: &str| match read(sql).expect(sql) {
        Some(AccessStatement::Rights { give, privileges, option, cascade, .. }) => {
            (give, privileges, option, cascade)
        }
        other => panic!("{sql}: {other:?}"),
    };
    let of = |privilege, columns: &[&str]| -> (Privilege, Vec<String>) {
        (privilege, columns.iter().map(|name| (*name).to_owned()).collect())
    };
    let (update, insert) = (of(Privilege::Update, &["a", "b"]), of(Privilege::Insert, &["c"]));
    assert_eq!(
        read("GRANT UPDATE (a, b), INSERT (C) ON t TO r WITH GRANT OPTION"),
        (true, vec![update, insert], true, false)
    );
    let all = of(Privilege::Select, &[]);
    for (sql, option, cascade) in [
        ("REVOKE GRANT OPTION FOR SELECT ON t FROM r CASCADE", true, true),
        ("REVOKE GRANT OPTION FOR SELECT ON t FROM r", true, false),
        ("REVOKE SELECT ON t FROM r RESTRICT", false, false),
        ("REVOKE SELECT ON t FROM r CASCADE;", false, true),
        ("REVOKE EXECUTE ON MODEL m FROM r CASCADE", false, true),
    ] {
        assert_eq!(read(sql), (false, vec![all.clone()], option, cascade), "{sql}");
    }
}

#[test]
fn owners() {
    for (sql, expected, if_there) in [
        ("ALTER TABLE t OWNER TO r", "table t", false),
        ("alter table if exists s.\"T\" owner to \"R\";", "table s.\"T\"", true),
        ("ALTER VIEW v OWNER TO r", "table v", false),
        ("ALTER MATERIALIZED VIEW a.b.c OWNER TO r", "table a.b.c", false),
        ("ALTER SCHEMA a.b OWNER TO USER", "schema a.b", false),
        ("ALTER DATABASE d OWNER TO r", "catalog d", false),
        ("ALTER MODEL m OWNER TO r", "model m", false),
        ("ALTER TABLE owner OWNER TO r", "table owner", false),
    ] {
        match read(sql).expect(sql) {
            Some(AccessStatement::Owner { object, owner, if_exists }) => {
                let found = match object {
                    Object::Table(name) => format!("table {name}"),
                    Object::Schema(name) => format!("schema {name}"),
                    Object::Catalog(name) => format!("catalog {name}"),
                    Object::Model(name) => format!("model {name}"),
                };
                assert_eq!((found.as_str(), if_exists), (expected, if_there), "{sql}");
                assert!(["r", "R", "user"].contains(&owner.as_str()), "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    for sql in [
        "ALTER TABLE t ADD COLUMN owner INT",
        "ALTER TABLE t RENAME TO owner",
        "ALTER TABLE owner RENAME TO x",
    ] {
        assert_eq!(read(sql).expect(sql), None, "{sql}");
    }
}
