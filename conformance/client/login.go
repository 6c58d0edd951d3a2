package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/jsonrpc"
)

// metadataURL is where the suite says that this client's metadata is.
const metadataURL = "https://conformance-test.local/client-metadata.json"

// newLogin returns the login that a scenario wants: who we are may be in its
// context.
func newLogin(scenario, url string) (*auth.OAuth, error) {
	opts := auth.OAuthOptions{
		Name: "suite", Server: url, Vault: new(auth.Memory), Open: visit, ClientMetadataURL: metadataURL,
		ClientCredentials: strings.HasPrefix(scenario, "auth/client-credentials"),
	}
	if text := os.Getenv(envContext); text != "" {
		told, err := jsonrpc.ParseObject(jsontext.Value(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", envContext, err)
		}
		opts.ClientID, _ = told.Text("client_id")
		opts.ClientSecret, _ = told.Text("client_secret")
		opts.PrivateKey, _ = told.Text("private_key_pem")
		opts.Algorithm, _ = told.Text("signing_algorithm")
		if assertion, ok := told.Text("valid_jwt"); ok {
			opts.ClientCredentials, opts.Assertion = true, auth.Fixed(assertion)
		}
	}
	return auth.NewOAuth(opts), nil
}

// visit does what a user with a browser does: the suite's authorization servers
// ask nothing.
func visit(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close() // how the login ended, it says itself
}
