// Package clientfile edits the files in which MCP clients, and Roster itself, keep
// their servers: JSON with comments, and the TOML of Codex.
//
// A [File] is a text with a map of servers in it. It is changed in place: an edit
// inserts, replaces or takes out the text of one entry, laid out like its
// neighbours, and leaves all other bytes as they are, comments, key order, line
// ends and a byte order mark among them. What an edit would make of the text is
// read again before it counts, so that a file is never left broken.
//
//	f, err := clientfile.Parse(clientfile.JSON, "mcpServers", text)
//	err = f.Set("files", []byte(`{"command": "files-server"}`))
//	err = clientfile.Replace(path, text, f.Bytes())
//
// [Clients] are the programs whose files are known, and where these are. A File is
// for one goroutine.
package clientfile
