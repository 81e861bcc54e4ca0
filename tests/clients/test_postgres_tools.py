"""What tools of PostgreSQL ask and count on: pgAdmin's first queries, tables that columns of results come from, dbt's renamed views.
Right values are those of PostgreSQL 15, unless a comment says otherwise."""

import psycopg
import pytest


@pytest.fixture
def connection(address):
    with psycopg.connect(**address, autocommit=True) as connection:
        yield connection


def test_columns_tell_their_tables(connection):
    connection.execute("CREATE TABLE told (id INT PRIMARY KEY, a TEXT, b INT)")
    connection.execute("INSERT INTO told VALUES (1, 'x', 2)")
    [(oid,)] = connection.execute("SELECT 'told'::regclass::oid").fetchall()
    for binary in (False, True):
        result = connection.execute("SELECT b, t.id AS key, a || 'y', a FROM told AS t WHERE id = %s ORDER BY a", (1,), binary=binary).pgresult
        assert [result.ftable(at) for at in range(4)] == [oid, oid, 0, oid]
        assert [result.ftablecol(at) for at in range(4)] == [3, 1, 0, 2]
    result = connection.execute("SELECT count(*), b FROM told GROUP BY b", prepare=False).pgresult
    assert result.ftable(0) == 0
    connection.execute("DROP TABLE told")


def test_one_table_is_reflected_without_the_others(connection):
    connection.execute("CREATE TABLE reflected (id INT PRIMARY KEY, a TEXT)")
    columns = "SELECT a.attname FROM pg_class AS c LEFT JOIN pg_attribute AS a ON c.oid = a.attrelid AND a.attnum > 0 WHERE c.relname IN (%s::VARCHAR)"
    assert connection.execute(columns, ("reflected",)).fetchall() == [("id",), ("a",)]
    # The number of the table limits the columns, too: with 10,000 tables this is milliseconds instead of seconds.
    plan = connection.execute("EXPLAIN " + columns.replace("%s", "'reflected'")).fetchall()
    assert any("attrelid = " in str(line) for line in plan), plan
    connection.execute("DROP TABLE reflected")


def test_what_pgadmin_asks_first(connection):
    first = "SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'"
    assert connection.execute(first).fetchall() == [("hex",)]
    role = """SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser,
        CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role,
        CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END as can_create_db,
        CASE WHEN 'pg_signal_backend'=ANY(ARRAY(WITH RECURSIVE cte AS (
            SELECT pg_roles.oid,pg_roles.rolname FROM pg_roles WHERE pg_roles.oid = roles.oid
            UNION ALL SELECT m.roleid, pgr.rolname FROM cte cte_1
            JOIN pg_auth_members m ON m.member = cte_1.oid JOIN pg_roles pgr ON pgr.oid = m.roleid)
            SELECT rolname FROM cte)) THEN True ELSE False END as can_signal_backend
        FROM pg_catalog.pg_roles as roles WHERE rolname = current_user"""
    [(_, name, _, _, _, signals)] = connection.execute(role).fetchall()
    [(user,)] = connection.execute("SELECT current_user").fetchall()
    assert (name, signals) == (user, False)


def test_views_get_other_names_as_dbt_gives_them(connection):
    connection.execute('CREATE VIEW "bowshot"."main"."v__dbt_tmp" AS (SELECT 1 AS a)')
    connection.execute('ALTER VIEW "bowshot"."main"."v__dbt_tmp" RENAME TO "v"')
    connection.execute('ALTER TABLE "bowshot"."main"."v" RENAME TO "v__dbt_backup"')
    assert connection.execute("SELECT a FROM v__dbt_backup").fetchall() == [(1,)]
    connection.execute("DROP VIEW v__dbt_backup")


def test_temporary_views_are_described(connection):
    # As Ibis asks what a query gives.
    connection.execute("CREATE TEMPORARY VIEW gives AS SELECT 1::int AS a, 'x' AS b")
    asked = """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_class c ON a.attrelid = c.oid
        JOIN pg_namespace n ON c.relnamespace = n.oid WHERE a.attnum > 0 AND NOT attisdropped AND c.relname = 'gives' ORDER BY attnum"""
    assert connection.execute(asked).fetchall() == [("a", "integer"), ("b", "text")]
    connection.execute("DROP VIEW gives")


def test_copy_by_other_names_of_schemas(connection):
    connection.execute("CREATE TEMP TABLE copied (a INT)")
    connection.execute("CREATE TABLE copied_too (a INT)")
    for table in ("pg_temp.copied", "public.copied_too", "bowshot.public.copied_too"):
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(b"1\n2\n")
            assert cursor.rowcount == 2, table
            with cursor.copy(f"COPY {table} (a) TO STDOUT") as copy:
                assert b"".join(copy).startswith(b"1\n2\n"), table
    assert connection.execute("SELECT (SELECT count(*) FROM copied), (SELECT count(*) FROM copied_too)").fetchall() == [(2, 4)]
    connection.execute("DROP TABLE copied")
    connection.execute("DROP TABLE copied_too")


def test_a_search_path_from_the_start(address, connection):
    for schema in ("path_a", "path_b"):
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.of_{schema} AS SELECT '{schema}' AS x")
    with psycopg.connect(**address, autocommit=True, options=r"-c search_path=path_a,\ path_b") as found:
        assert found.execute("SHOW search_path").fetchone() == ("path_a, path_b",)
        assert found.execute("SELECT a.x, b.x FROM of_path_a a, of_path_b b").fetchall() == [("path_a", "path_b")]
        # A prepared statement is read again when names are looked for elsewhere.
        found.execute("CREATE TABLE of_path_b AS SELECT 'nearer' AS x")
        asked = "SELECT x FROM of_path_b"
        assert found.execute(asked, prepare=True).fetchone() == ("nearer",)
        found.execute("SET search_path = path_b, path_a")
        assert found.execute(asked, prepare=True).fetchone() == ("path_b",)
        with found.cursor() as cursor, cursor.copy("COPY of_path_a FROM STDIN") as copy:
            copy.write(b"more\n")
        assert found.execute("SELECT count(*) FROM path_a.of_path_a").fetchone() == (2,)
    for schema in ("path_a", "path_b"):
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


def test_primary_keys_by_their_places(connection):
    connection.execute("CREATE TABLE keyed (a INT, b INT, c INT, PRIMARY KEY (c, a))")
    # As psqlodbc asks for them.
    asked = """SELECT ta.attname, ia.attnum FROM pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, pg_catalog.pg_class c,
        pg_catalog.pg_index i WHERE c.oid = 'keyed'::regclass AND i.indrelid = c.oid AND i.indisprimary AND ia.attrelid = c.oid
        AND ia.attnum > 0 AND ia.attnum <= 2 AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum - 1] ORDER BY ia.attnum"""
    assert connection.execute(asked).fetchall() == [("c", 1), ("a", 2)]
    connection.execute("DROP TABLE keyed")
