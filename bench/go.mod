module github.com/mcp-roster/roster/bench

go 1.26
