// Package mcptest has in-memory wires and scripted peers for tests.
package mcptest
