// Package mcp is the vocabulary of the Model Context Protocol: its methods,
// its versions and what each of them has, its error codes and reserved _meta
// keys, the codecs for cursors and header values, and the splices that change
// one thing in a message and keep every other byte.
//
//	caller, err := mcp.ReadCaller(params)          // who asks, by what version
//	params = mcp.Splice(obj, mcp.Edit{Name: "name", Value: mcp.String("search")})
//
// Protocol versions are dates. [Versions] lists those this module speaks; what
// differs between them is one table, so that code asks a [Version] what it has
// instead of comparing dates.
//
// Nothing here holds state; all functions may be called concurrently.
package mcp
