module github.com/mcp-roster/roster

go 1.26
