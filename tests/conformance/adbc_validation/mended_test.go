package validation

import (
	"context"
	"testing"

	"github.com/apache/arrow-adbc/go/adbc"
	"github.com/apache/arrow-adbc/go/adbc/validation"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// TestMendedIngest runs the ingest tests that the driver fails before it asks the server, through the same driver with
// its two faults mended.
//
//   - Statement.SetSqlQuery keeps the rows that were bound for the ingest before, and Statement.ExecuteQuery then
//     refuses the query for them. Mended: a new query has no rows bound.
//   - Rows that were bound as a batch are wrapped in a reader that is never released. Mended: they are bound as a
//     reader.
func TestMendedIngest(t *testing.T) {
	for name, test := range map[string]func(*validation.StatementTests){
		"TestSqlIngestInts":         (*validation.StatementTests).TestSqlIngestInts,
		"TestSqlIngestAppend":       (*validation.StatementTests).TestSqlIngestAppend,
		"TestSqlIngestReplace":      (*validation.StatementTests).TestSqlIngestReplace,
		"TestSqlIngestCreateAppend": (*validation.StatementTests).TestSqlIngestCreateAppend,
	} {
		t.Run(name, func(t *testing.T) {
			tests := &validation.StatementTests{Quirks: mendedQuirks{newQuirks(t)}}
			tests.SetT(t)
			tests.SetupTest()
			defer tests.TearDownTest()
			// The suite's own runner lives on after a panic too.
			defer func() {
				if cause := recover(); cause != nil {
					t.Error("panic: ", cause)
				}
			}()
			test(tests)
		})
	}
}

// mendedQuirks is the same server, reached through the mended driver.
type mendedQuirks struct{ *quirks }

func (q mendedQuirks) SetupDriver(t *testing.T) adbc.Driver {
	return mendedDriver{q.quirks.SetupDriver(t)}
}

type mendedDriver struct{ adbc.Driver }

func (d mendedDriver) NewDatabase(options map[string]string) (adbc.Database, error) {
	database, err := d.Driver.NewDatabase(options)
	return mendedDatabase{database}, err
}

type mendedDatabase struct{ adbc.Database }

func (d mendedDatabase) Open(ctx context.Context) (adbc.Connection, error) {
	connection, err := d.Database.Open(ctx)
	return mendedConnection{connection}, err
}

type mendedConnection struct{ adbc.Connection }

func (c mendedConnection) NewStatement() (adbc.Statement, error) {
	statement, err := c.Connection.NewStatement()
	return mendedStatement{statement}, err
}

type mendedStatement struct{ adbc.Statement }

func (s mendedStatement) SetSqlQuery(query string) error {
	if err := s.Statement.BindStream(context.Background(), nil); err != nil {
		return err
	}
	return s.Statement.SetSqlQuery(query)
}

func (s mendedStatement) Bind(ctx context.Context, rows arrow.RecordBatch) error {
	reader, err := array.NewRecordReader(rows.Schema(), []arrow.RecordBatch{rows})
	if err != nil {
		return err
	}
	defer reader.Release()
	return s.Statement.BindStream(ctx, reader)
}
