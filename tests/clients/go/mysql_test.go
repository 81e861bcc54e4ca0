package shop

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

func openMysql(t *testing.T, more string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("ada@tcp(127.0.0.1:%s)/main?parseTime=true%s", os.Getenv("BOWSHOT_MYSQL_PORT"), more))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, text string, values ...any) {
	t.Helper()
	if _, err := db.Exec(text, values...); err != nil {
		t.Fatal(text, err)
	}
}

func TestMysqlValues(t *testing.T) {
	moment := time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, more := range []string{"", "&interpolateParams=true"} {
		db := openMysql(t, more)
		run(t, db, "CREATE TABLE go_values (a TINYINT, b BIGINT, c DOUBLE, d DECIMAL(20, 5), e TEXT, f BLOB, g DATETIME(6), h TEXT)")
		run(t, db, "INSERT INTO go_values VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			-128, int64(math.MinInt64), 0.1, "-99999999999.00001", "it's ä\n\\", []byte{0, 255}, moment, nil)
		var small int8
		var whole int64
		var float float64
		var exact, text string
		var raw []byte
		var at time.Time
		var none sql.NullString
		err := db.QueryRow("SELECT * FROM go_values WHERE a = ?", -128).Scan(&small, &whole, &float, &exact, &text, &raw, &at, &none)
		if err != nil || small != -128 || whole != math.MinInt64 || float != 0.1 || exact != "-99999999999.00001" ||
			text != "it's ä\n\\" || !bytes.Equal(raw, []byte{0, 255}) || !at.Equal(moment) || none.Valid {
			t.Fatal(more, err, small, whole, float, exact, text, raw, at, none)
		}
		run(t, db, "DROP TABLE go_values")
	}
}

func TestMysqlErrorsAndCancel(t *testing.T) {
	db := openMysql(t, "")
	for text, number := range map[string]uint16{
		"SELECT * FROM missing":      1146,
		"SELECT missing FROM nation": 1054,
		"SELECT missing(1)":          1305,
		"SELEC 1":                    1064,
	} {
		var told *mysql.MySQLError
		if _, err := db.Exec(text); !errors.As(err, &told) || told.Number != number {
			t.Error(text, err)
		}
	}
	limited, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err := db.ExecContext(limited, slow); err == nil || time.Since(started) > 20*time.Second {
		t.Fatal(err, time.Since(started))
	}
	run(t, db, "SELECT 1")
}

func TestMysqlMetadataTransactionsAndBulk(t *testing.T) {
	db := openMysql(t, "")
	run(t, db, "CREATE TABLE go_rows (a BIGINT PRIMARY KEY, b VARCHAR(20))")
	defer run(t, db, "DROP TABLE go_rows")
	rows, err := db.Query("SELECT a, b FROM go_rows")
	if err != nil {
		t.Fatal(err)
	}
	types, err := rows.ColumnTypes()
	if err != nil || types[0].DatabaseTypeName() != "BIGINT" || types[1].Name() != "b" {
		t.Fatal(types, err)
	}
	_ = rows.Close()
	for _, keep := range []bool{false, true} {
		transaction, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		insert, err := transaction.Prepare("INSERT INTO go_rows VALUES (?, ?)")
		if err != nil {
			t.Fatal(err)
		}
		for n := range 200 {
			if _, err = insert.Exec(n, fmt.Sprint("x", n)); err != nil {
				t.Fatal(err)
			}
		}
		end := transaction.Rollback
		if keep {
			end = transaction.Commit
		}
		if err = end(); err != nil {
			t.Fatal(err)
		}
	}
	var count, sum int64
	if err = db.QueryRow("SELECT count(*), sum(a) FROM go_rows").Scan(&count, &sum); err != nil || count != 200 || sum != 19900 {
		t.Fatal(count, sum, err)
	}
	var told *mysql.MySQLError
	if _, err = db.Exec("INSERT INTO go_rows VALUES (7, 'again')"); !errors.As(err, &told) || told.Number != 1062 {
		t.Fatal(err)
	}
}
