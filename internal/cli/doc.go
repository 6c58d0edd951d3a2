// Package cli is the command line: what each command takes, does and prints.
//
// The commands that ask a gateway (list, call, read, prompt, inspect, status)
// talk to one that runs: the one at --url, else the one that was started with the
// same configuration. If there is none, all but status start the configured
// servers for the one command. They speak MCP through the public client.
//
// Results go to standard output, everything else to standard error. On a terminal
// lists are tables; elsewhere they are lines of fields separated by tabs, without
// a heading. With --output json each command prints one JSON value.
package cli
