// Package shop runs Go's database/sql with the Flight SQL driver of arrow-go against a server with the sample data.
package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/apache/arrow-go/v18/arrow/flight/flightsql/driver"
)

// Its first rows come at once and its last one not today.
const long = "SELECT a.l_orderkey FROM lineitem a CROSS JOIN orders"

func open(t *testing.T) *sql.DB {
	t.Helper()
	dsn := fmt.Sprintf("flightsql://%s:%s?timeout=30s", os.Getenv("BOWSHOT_HOST"), os.Getenv("BOWSHOT_PORT"))
	db, err := sql.Open("flightsql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestPing(t *testing.T) {
	if err := open(t).Ping(); err != nil {
		t.Fatal(err)
	}
}

func TestQuery(t *testing.T) {
	rows, err := open(t).Query("SELECT n_nationkey, n_name FROM nation ORDER BY n_nationkey")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || strings.Join(columns, ",") != "n_nationkey,n_name" {
		t.Fatal(columns, err)
	}
	var count int64
	for rows.Next() {
		var key int64
		var name string
		if err := rows.Scan(&key, &name); err != nil {
			t.Fatal(err)
		}
		if key != count || (key == 7) != (name == "GERMANY") {
			t.Fatal(key, name)
		}
		count++
	}
	if err := rows.Err(); err != nil || count != 25 {
		t.Fatal(count, err)
	}
}

func TestLargeFetchWithinTheDefaultMessageLimit(t *testing.T) {
	rows, err := open(t).Query("SELECT l_orderkey, l_comment FROM lineitem")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	count := 0
	for rows.Next() {
		count++
	}
	if err := rows.Err(); err != nil || count != 60_000 {
		t.Fatal(count, err)
	}
}

func TestValues(t *testing.T) {
	row := open(t).QueryRow(`SELECT c_bool, c_int8, c_int16, c_int32, c_int64, c_float32, c_float64, c_decimal, c_string,
		c_binary, c_timestamp_s, c_timestamp_ms, c_timestamp_us, c_timestamp_ns FROM plain_types WHERE c_int64 = 1`)
	var truth bool
	var integers [4]int64
	var reals [3]float64
	var text string
	var bytes []byte
	var times [4]time.Time
	err := row.Scan(&truth, &integers[0], &integers[1], &integers[2], &integers[3], &reals[0], &reals[1], &reals[2],
		&text, &bytes, &times[0], &times[1], &times[2], &times[3])
	if err != nil {
		t.Fatal(err)
	}
	moment := time.Date(2024, 2, 29, 12, 34, 56, 789_000_000, time.UTC)
	if !truth || integers != [4]int64{1, 1, 1, 1} || reals != [3]float64{1.5, 1.5, 1.5} || text != "a" || string(bytes) != "a" {
		t.Error(truth, integers, reals, text, bytes)
	}
	for index, got := range times {
		want := moment
		if index == 0 {
			want = moment.Truncate(time.Second)
		}
		if !got.Equal(want) {
			t.Error(index, got, want)
		}
	}
}

func TestNulls(t *testing.T) {
	row := open(t).QueryRow("SELECT c_bool, c_int64, c_float64, c_string, c_timestamp_us FROM plain_types WHERE c_int64 IS NULL")
	var truth sql.NullBool
	var integer sql.NullInt64
	var real sql.NullFloat64
	var text sql.NullString
	var moment sql.NullTime
	if err := row.Scan(&truth, &integer, &real, &text, &moment); err != nil {
		t.Fatal(err)
	}
	if truth.Valid || integer.Valid || real.Valid || text.Valid || moment.Valid {
		t.Error(truth, integer, real, text, moment)
	}
}

func TestParameters(t *testing.T) {
	db := open(t)
	for _, test := range []struct {
		query string
		value any
		want  string
	}{
		{"SELECT n_name FROM nation WHERE n_nationkey = $1", 7, "GERMANY"},
		{"SELECT n_name FROM nation WHERE n_nationkey = ?", int64(7), "GERMANY"},
		{"SELECT n_name FROM nation WHERE n_name = $1", "PERU", "PERU"},
		{"SELECT c_string FROM plain_types WHERE c_float64 = $1", 1.5, "a"},
		{"SELECT c_string FROM plain_types WHERE c_bool = $1", true, "a"},
	} {
		var got string
		if err := db.QueryRow(test.query, test.value).Scan(&got); err != nil || got != test.want {
			t.Error(test.query, test.value, got, err)
		}
	}
}

func TestPreparedStatementRunsAgain(t *testing.T) {
	statement, err := open(t).Prepare("SELECT n_name FROM nation WHERE n_nationkey = $1")
	if err != nil {
		t.Fatal(err)
	}
	defer statement.Close()
	for key, want := range map[int]string{3: "CANADA", 7: "GERMANY", 24: "UNITED STATES"} {
		var got string
		if err := statement.QueryRow(key).Scan(&got); err != nil || got != want {
			t.Error(key, got, err)
		}
	}
	var none string
	if err := statement.QueryRow(1000).Scan(&none); !errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	db := open(t)
	for _, query := range []string{"SELEC 1", "SELECT * FROM lineitm", "SELECT no_such_column FROM nation"} {
		rows, err := db.Query(query)
		if err == nil {
			rows.Close()
			t.Error("no error", query)
		}
	}
	if _, err := db.Exec("DROP TABLE nation"); err == nil {
		t.Error("a table made of files was dropped")
	}
	rows, err := db.Query("SELECT 1 / (l_orderkey - l_orderkey) FROM lineitem")
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
		rows.Close()
	}
	if err == nil {
		t.Error("division by zero went unnoticed")
	}
}

func TestWriting(t *testing.T) {
	db := open(t)
	// One connection, so that statements outside of a transaction are in the session of those within.
	db.SetMaxOpenConns(1)
	exec := func(run func(string, ...any) (sql.Result, error), query string, affected int64, arguments ...any) {
		t.Helper()
		result, err := run(query, arguments...)
		if err != nil {
			t.Fatal(query, err)
		}
		if got, err := result.RowsAffected(); affected >= 0 && (err != nil || got != affected) {
			t.Error(query, got, err)
		}
	}
	count := func(want int64) {
		t.Helper()
		var got int64
		if err := db.QueryRow("SELECT count(*) FROM go_writing").Scan(&got); err != nil || got != want {
			t.Error(got, want, err)
		}
	}
	exec(db.Exec, "CREATE TABLE go_writing (id BIGINT, name VARCHAR)", -1)
	defer exec(db.Exec, "DROP TABLE go_writing", -1)
	exec(db.Exec, "INSERT INTO go_writing VALUES (1, 'one'), (2, 'two')", 2)
	exec(db.Exec, "INSERT INTO go_writing VALUES ($1, $2)", 1, int64(3), "three")
	for _, commit := range []bool{true, false} {
		transaction, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(transaction.Exec, "DELETE FROM go_writing WHERE id = 1", map[bool]int64{true: 1, false: 0}[commit])
		exec(transaction.Exec, "INSERT INTO go_writing VALUES (4, 'four')", 1)
		end := transaction.Rollback
		if commit {
			end = transaction.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		count(3)
	}
	exec(db.Exec, "UPDATE go_writing SET name = 'x' WHERE id > 2", 2)
}

func TestCancel(t *testing.T) {
	db := open(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	count := 0
	rows, err := db.QueryContext(ctx, long)
	if err == nil {
		for rows.Next() {
			count++
		}
		err = rows.Err()
		rows.Close()
	}
	// The driver does not always say that it was cut off.
	if err == nil && (ctx.Err() == nil || count == 60_000*15_000) {
		t.Error("the query ended by itself", count)
	}
}

func TestManyAtOnce(t *testing.T) {
	db := open(t)
	var group sync.WaitGroup
	for number := range 32 {
		group.Go(func() {
			var got, count int64
			query := fmt.Sprintf("SELECT CAST(%d AS BIGINT), count(*) FROM orders", number)
			if err := db.QueryRow(query).Scan(&got, &count); err != nil || got != int64(number) || count != 15_000 {
				t.Error(number, got, count, err)
			}
		})
	}
	group.Wait()
}
