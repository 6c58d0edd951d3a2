// Package interop runs roster between MCP clients and servers that other people wrote.
//
// It has tests only. TestGateway puts npm and Go servers behind one roster, drives it with npm and
// Go clients over HTTP and stdio, and compares what each client sees with what the same client sees
// when it asks the servers themselves: lists, definitions and results, and also what servers ask and tell it
// meanwhile: elicitation, sampling, roots, progress, log messages, updates of resources. TestDirect is that second half alone: it checks the clients,
// the servers and this harness without roster.
//
// TestLogin and TestBrowser put a server of the Go SDK behind roster that takes tokens of an OpenID provider,
// and log in to it, the latter with a real browser.
//
//	make run      install the npm peers, build roster, run all but TestDirect and TestBrowser
//	make direct   install the npm peers, run TestDirect
//	make browser  build roster, run TestBrowser, which needs Chromium (BROWSER_PROGRAM names it)
//
// TestGateway and TestDirect print a table of clients and servers. The environment variable ROSTER names the binary under
// test. Without npm only the Go peers take part, which the output says; where CI is "true", that is
// a failure.
package interop
