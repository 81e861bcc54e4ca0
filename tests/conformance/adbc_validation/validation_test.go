// Package validation runs the validation suite of the Go ADBC library through its Flight SQL driver against Bowshot.
package validation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-adbc/go/adbc"
	"github.com/apache/arrow-adbc/go/adbc/driver/flightsql"
	"github.com/apache/arrow-adbc/go/adbc/validation"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/suite"
)

// How long the server may take to see a new, replaced or removed file.
const seenWithin = 20 * time.Second

func TestDatabase(t *testing.T)   { suite.Run(t, &validation.DatabaseTests{Quirks: newQuirks(t)}) }
func TestConnection(t *testing.T) { suite.Run(t, &validation.ConnectionTests{Quirks: newQuirks(t)}) }
func TestStatement(t *testing.T)  { suite.Run(t, &validation.StatementTests{Quirks: newQuirks(t)}) }

// quirks tells the suite what Bowshot has. Tables are made as files in the served folder, since the server reads only.
type quirks struct {
	t              *testing.T
	uri, tables    string
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
		tables:  os.Getenv("BOWSHOT_TABLES"),
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

// The driver has no statistics; transactions and ingest wait for the server's writing.
func (q *quirks) SupportsStatistics() bool         { return false }
func (q *quirks) SupportsTransactions() bool       { return false }
func (q *quirks) SupportsBulkIngest(_ string) bool { return false }

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

func (q *quirks) CreateSampleTable(name string, rows arrow.RecordBatch) error {
	hidden := filepath.Join(q.tables, "."+name+".arrow")
	file, err := os.Create(hidden)
	if err != nil {
		return err
	}
	writer, err := ipc.NewFileWriter(file, ipc.WithSchema(rows.Schema()))
	if err != nil {
		return err
	}
	if err := writer.Write(rows); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	// The file writer leaves closing to whoever opened the file.
	_ = file.Close()
	if err := os.Rename(hidden, q.file(name)); err != nil {
		return err
	}
	return q.waitFor(name, true)
}

func (q *quirks) DropTable(_ adbc.Connection, name string) error {
	if err := os.Remove(q.file(name)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return q.waitFor(name, false)
}

func (q *quirks) file(name string) string { return filepath.Join(q.tables, name+".arrow") }

// waitFor waits until a table can be queried, or cannot.
func (q *quirks) waitFor(name string, wanted bool) error {
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
	for deadline := time.Now().Add(seenWithin); ; {
		_, err := connection.GetTableSchema(context.Background(), nil, nil, name)
		if (err == nil) == wanted {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s table %s is there: %v: %s", seenWithin, name, !wanted, strings.TrimSpace(fmt.Sprint(err)))
		}
	}
}
