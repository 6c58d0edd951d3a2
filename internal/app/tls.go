package app

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/mcp-roster/roster/internal/config"
)

// serverTLS returns what HTTPS is served with, nil if it is not. The files are
// read once.
func serverTLS(set config.Settings) (*tls.Config, error) {
	switch {
	case set.TLSCert == "" && set.TLSKey == "":
		return nil, nil
	case set.TLSKey == "":
		return nil, fmt.Errorf("TLS needs a key beside the certificate %s: --tls-key, or tlsKey in the configuration", set.TLSCert)
	case set.TLSCert == "":
		return nil, fmt.Errorf("TLS needs a certificate beside the key %s: --tls-cert, or tlsCert in the configuration", set.TLSKey)
	}
	pair, err := tls.LoadX509KeyPair(set.TLSCert, set.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("TLS with certificate %s and key %s: %w", set.TLSCert, set.TLSKey, err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
	}, nil
}

// rootCAs returns the certificates of the system with those of a PEM file; nil,
// which means the system's, without a file. It is read at each connect.
func rootCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caFile %s has no certificate in PEM", file)
	}
	return pool, nil
}
