package shop

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/driver"
)

// An encrypted connection to a server whose authority the machine does not know.
func TestTls(t *testing.T) {
	authority, err := os.ReadFile(os.Getenv("BOWSHOT_TLS_AUTHORITY"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("no certificate of an authority")
	}
	if err := driver.RegisterTLSConfig("bowshot", &tls.Config{RootCAs: roots}); err != nil {
		t.Fatal(err)
	}
	for config, trusted := range map[string]bool{"bowshot": true, "enabled": false} {
		host, port := os.Getenv("BOWSHOT_HOST"), os.Getenv("BOWSHOT_TLS_PORT")
		db, err := sql.Open("flightsql", fmt.Sprintf("flightsql://%s:%s?timeout=30s&tls=%s", host, port, config))
		if err != nil {
			t.Fatal(err)
		}
		var count int64
		err = db.QueryRow("SELECT count(*) FROM lineitem").Scan(&count)
		if trusted && (err != nil || count != 60_000) || !trusted && err == nil {
			t.Error(config, count, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
