package shop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const slow = "SELECT count(*) FROM lineitem a, lineitem b, lineitem c WHERE a.l_partkey < b.l_partkey"

func openPgx(t *testing.T, more string) *pgx.Conn {
	t.Helper()
	uri := fmt.Sprintf("postgres://ada@127.0.0.1:%s/bowshot?sslmode=disable%s", os.Getenv("BOWSHOT_PG_PORT"), more)
	connection, err := pgx.Connect(context.Background(), uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

func must(t *testing.T, connection *pgx.Conn, sql string, values ...any) {
	t.Helper()
	if _, err := connection.Exec(context.Background(), sql, values...); err != nil {
		t.Fatal(sql, err)
	}
}

// Each way in which pgx sends statements.
var modes = []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}

func TestPgxValues(t *testing.T) {
	ctx := context.Background()
	moment := time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, mode := range modes {
		connection := openPgx(t, "&default_query_exec_mode="+mode)
		var small int16
		var whole int64
		var float float64
		var truth bool
		var text string
		var bytes []byte
		var day, at time.Time
		var none *string
		row := connection.QueryRow(ctx,
			"SELECT $1::smallint, $2::bigint, $3::double precision, $4::boolean, $5::text, $6::bytea, $7::date, $8::timestamptz, NULL::text",
			int16(-32768), int64(math.MinInt64), 0.1, true, "it's ä\n\\", []byte{0, 255}, moment.Truncate(24*time.Hour), moment)
		if err := row.Scan(&small, &whole, &float, &truth, &text, &bytes, &day, &at, &none); err != nil {
			t.Fatal(mode, err)
		}
		if small != -32768 || whole != math.MinInt64 || float != 0.1 || !truth || text != "it's ä\n\\" ||
			string(bytes) != "\x00\xff" || day.Day() != 2 || !at.Equal(moment) || none != nil {
			t.Fatal(mode, small, whole, float, truth, text, bytes, day, at, none)
		}
		var number pgtype.Numeric
		if err := connection.QueryRow(ctx, "SELECT 12.50::numeric(10, 2)").Scan(&number); err != nil || number.Int.Int64() != 1250 {
			t.Fatal(mode, number, err)
		}
		var list []int32
		if err := connection.QueryRow(ctx, "SELECT $1::integer[]", []int32{1, 2}).Scan(&list); err != nil || len(list) != 2 {
			t.Fatal(mode, list, err)
		}
	}
}

func TestPgxErrorsAndCancel(t *testing.T) {
	ctx := context.Background()
	connection := openPgx(t, "")
	for sql, code := range map[string]string{
		"SELECT * FROM missing":               "42P01",
		"SELECT missing FROM nation":          "42703",
		"SELECT missing(1)":                   "42883",
		"SELEC 1":                             "42601",
		"SELECT 1 / 0":                        "22012",
		"SELECT 'x'::int":                     "22P02",
		"SELECT n_name, count(*) FROM nation": "42803",
	} {
		var told *pgconn.PgError
		if _, err := connection.Exec(ctx, sql); !errors.As(err, &told) || told.Code != code {
			t.Error(sql, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err := openPgx(t, "").Exec(limited, slow); err == nil || time.Since(started) > 20*time.Second {
		t.Fatal(err, time.Since(started))
	}
	must(t, connection, "SELECT 1")
}

func TestPgxMetadata(t *testing.T) {
	ctx := context.Background()
	connection := openPgx(t, "")
	must(t, connection, "CREATE TABLE pgx_meta (a INT PRIMARY KEY, b TEXT)")
	defer must(t, connection, "DROP TABLE pgx_meta")
	described, err := connection.Prepare(ctx, "s", "SELECT a, b FROM pgx_meta WHERE a = $1")
	if err != nil || len(described.ParamOIDs) != 1 || described.ParamOIDs[0] != pgtype.Int4OID || described.Fields[1].Name != "b" {
		t.Fatal(described, err)
	}
	var count int
	err = connection.QueryRow(ctx, "SELECT count(*) FROM pg_catalog.pg_attribute WHERE attrelid = 'pgx_meta'::regclass AND attnum > 0").Scan(&count)
	if err != nil || count != 2 {
		t.Fatal(count, err)
	}
}

func TestPgxTransactionsAndBulk(t *testing.T) {
	ctx := context.Background()
	connection := openPgx(t, "")
	must(t, connection, "CREATE TABLE pgx_rows (a BIGINT, b TEXT, c TIMESTAMP)")
	defer must(t, connection, "DROP TABLE pgx_rows")
	transaction, err := connection.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = transaction.Exec(ctx, "INSERT INTO pgx_rows (a) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	inner, err := transaction.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = inner.Exec(ctx, "INSERT INTO pgx_rows (a) VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(inner.Rollback(ctx), transaction.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
	rows := make([][]any, 20000)
	for n := range rows {
		rows[n] = []any{int64(n), fmt.Sprint("x", n), time.Unix(int64(n), 0).UTC()}
	}
	copied, err := connection.CopyFrom(ctx, pgx.Identifier{"pgx_rows"}, []string{"a", "b", "c"}, pgx.CopyFromRows(rows))
	if err != nil || copied != 20000 {
		t.Fatal(copied, err)
	}
	batch := &pgx.Batch{}
	for n := range 100 {
		batch.Queue("INSERT INTO pgx_rows (a) VALUES ($1)", n)
	}
	if err = connection.SendBatch(ctx, batch).Close(); err != nil {
		t.Fatal(err)
	}
	var count int
	if err = connection.QueryRow(ctx, "SELECT count(*) FROM pgx_rows").Scan(&count); err != nil || count != 20101 {
		t.Fatal(count, err)
	}
}
