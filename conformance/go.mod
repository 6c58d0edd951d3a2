module github.com/mcp-roster/roster/conformance

go 1.26.0

require (
	github.com/go-json-experiment/json v1.27.2
	github.com/mcp-roster/roster v0.0.0
	github.com/yosida95/uritemplate/v3 v3.0.2
)

require (
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/modelcontextprotocol/go-sdk v1.8.0 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	golang.org/x/oauth2 v0.38.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/mcp-roster/roster => ../

tool github.com/modelcontextprotocol/go-sdk/conformance/everything-server
