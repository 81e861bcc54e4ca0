// Package validation runs the validation suite of the Go ADBC library through its Flight SQL driver against Bowshot.
package validation

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/apache/arrow-adbc/go/adbc"
	"github.com/apache/arrow-adbc/go/adbc/driver/flightsql"
	"github.com/apache/arrow-adbc/go/adbc/validation"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/suite"
)

func TestDatabase(t *testing.T)   { suite.Run(t, &validation.DatabaseTests{Quirks: newQuirks(t)}) }
func TestConnection(t *testing.T) { suite.Run(t, &validation.ConnectionTests{Quirks: newQuirks(t)}) }
func TestStatement(t *testing.T)  { suite.Run(t, &validation.StatementTests{Quirks: newQuirks(t)}) }

// quirks tells the suite what Bowshot has.
type quirks struct {
	t              *testing.T
	uri            string
	version, arrow string
	allocator      *memory.CheckedAllocator
}

func newQuirks(t *testing.T) *quirks {
	lock, err := os.ReadFile("../../../Cargo.lock")
	if err != nil {
		t.Fatal(err)
	}
	return &quirks{
		t:       t,
		uri:     os.Getenv("BOWSHOT_URI"),
		version: locked(t, string(lock), "bowshot"),
		arrow:   locked(t, string(lock), "arrow"),
	}
}

// locked is the version of a package in Cargo.lock.
func locked(t *testing.T, lock, name string) string {
	found := regexp.MustCompile(`name = "` + name + `"\nversion = "([^"]+)"`).FindStringSubmatch(lock)
	if found == nil {
		t.Fatal("no package in Cargo.lock: ", name)
	}
	return found[1]
}

func (q *quirks) SetupDriver(*testing.T) adbc.Driver {
	q.allocator = memory.NewCheckedAllocator(memory.DefaultAllocator)
	return flightsql.NewDriver(q.allocator)
}

func (q *quirks) TearDownDriver(t *testing.T, _ adbc.Driver) { q.allocator.AssertSize(t, 0) }
func (q *quirks) Alloc() memory.Allocator                    { return q.allocator }
func (q *quirks) DatabaseOptions() map[string]string {
	return map[string]string{adbc.OptionKeyURI: q.uri}
}
func (q *quirks) BindParameter(index int) string { return fmt.Sprintf("$%d", index+1) }
func (q *quirks) Catalog() string                { return "bowshot" }
func (q *quirks) DBSchema() string               { return "main" }

func (q *quirks) SupportsConcurrentStatements() bool          { return true }
func (q *quirks) SupportsCurrentCatalogSchema() bool          { return true }
func (q *quirks) SupportsGetSetOptions() bool                 { return true }
func (q *quirks) SupportsExecuteSchema() bool                 { return true }
func (q *quirks) SupportsPartitionedData() bool               { return true }
func (q *quirks) SupportsGetParameterSchema() bool            { return true }
func (q *quirks) SupportsDynamicParameterBinding() bool       { return true }
func (q *quirks) SupportsErrorIngestIncompatibleSchema() bool { return true }

func (q *quirks) SupportsTransactions() bool       { return true }
func (q *quirks) SupportsBulkIngest(_ string) bool { return true }

// The driver has no statistics.
func (q *quirks) SupportsStatistics() bool { return false }

func (q *quirks) GetMetadata(code adbc.InfoCode) interface{} {
	switch code {
	case adbc.InfoDriverName:
		return "ADBC Flight SQL Driver - Go"
	case adbc.InfoDriverVersion, adbc.InfoDriverArrowVersion:
		return "(unknown or development build)"
	case adbc.InfoDriverADBCVersion:
		return adbc.AdbcVersion1_1_0
	case adbc.InfoVendorName:
		return "Bowshot"
	case adbc.InfoVendorVersion:
		return q.version
	case adbc.InfoVendorArrowVersion:
		return q.arrow
	}
	return nil
}

// SampleTableSchemaMetadata is what the server tells about each column of a table.
func (q *quirks) SampleTableSchemaMetadata(table string, kind arrow.DataType) arrow.Metadata {
	told := map[string]string{
		"CATALOG_NAME":      "bowshot",
		"DB_SCHEMA_NAME":    "main",
		"SCHEMA_NAME":       "main",
		"TABLE_NAME":        table,
		"IS_AUTO_INCREMENT": "0",
		"IS_READ_ONLY":      "1",
		"IS_SEARCHABLE":     "1",
	}
	switch kind.ID() {
	case arrow.INT64:
		told["TYPE_NAME"], told["PRECISION"], told["SCALE"], told["IS_CASE_SENSITIVE"] = "BIGINT", "19", "0", "0"
	case arrow.STRING:
		told["TYPE_NAME"], told["PRECISION"], told["IS_CASE_SENSITIVE"] = "VARCHAR", "2147483647", "1"
	default:
		q.t.Fatal("no sample column of type ", kind)
	}
	metadata := make(map[string]string, len(told))
	for key, value := range told {
		metadata["ARROW:FLIGHT:SQL:"+key] = value
	}
	return arrow.MetadataFrom(metadata)
}

// CreateSampleTable makes a table of the rows, in place of one that is there.
func (q *quirks) CreateSampleTable(name string, rows arrow.RecordBatch) error {
	database, err := flightsql.NewDriver(memory.DefaultAllocator).NewDatabase(q.DatabaseOptions())
	if err != nil {
		return err
	}
	defer database.Close()
	connection, err := database.Open(context.Background())
	if err != nil {
		return err
	}
	defer connection.Close()
	statement, err := connection.NewStatement()
	if err != nil {
		return err
	}
	defer statement.Close()
	if err := statement.SetOption(adbc.OptionKeyIngestTargetTable, name); err != nil {
		return err
	}
	if err := statement.SetOption(adbc.OptionKeyIngestMode, adbc.OptionValueIngestModeReplace); err != nil {
		return err
	}
	// The driver never frees what was bound to it, so it gets a copy that the suite's allocator does not know.
	copied, err := copyOf(rows)
	if err != nil {
		return err
	}
	if err := statement.Bind(context.Background(), copied); err != nil {
		return err
	}
	written, err := statement.ExecuteUpdate(context.Background())
	if err == nil && written != rows.NumRows() {
		err = fmt.Errorf("wrote %d rows of %d", written, rows.NumRows())
	}
	return err
}

func copyOf(rows arrow.RecordBatch) (arrow.RecordBatch, error) {
	var stream bytes.Buffer
	writer := ipc.NewWriter(&stream, ipc.WithSchema(rows.Schema()))
	if err := writer.Write(rows); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	reader, err := ipc.NewReader(&stream, ipc.WithAllocator(memory.DefaultAllocator))
	if err != nil {
		return nil, err
	}
	return reader.Read()
}

func (q *quirks) DropTable(connection adbc.Connection, name string) error {
	statement, err := connection.NewStatement()
	if err != nil {
		return err
	}
	defer statement.Close()
	if err := statement.SetSqlQuery("DROP TABLE IF EXISTS " + name); err != nil {
		return err
	}
	_, err = statement.ExecuteUpdate(context.Background())
	return err
}
