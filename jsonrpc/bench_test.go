package jsonrpc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/jsonrpc"
)

// benchmarkTexts are messages as they come: the text of a file, CJK text, and
// data of many small values.
func benchmarkTexts() map[string][]byte {
	const (
		request  = `{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"x":%s}}}`
		response = `{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":%s}],"isError":false}}`
	)
	text := func(n int) string { return `"` + strings.Repeat("The quick brown fox. ", n/21+1)[:n] + `"` }
	lines := func(n int) string { return `"` + strings.Repeat(`the quick brown fox jumps over it\n`, n/35) + `"` }
	data := func(n int) string {
		const row = `{"id":1234567,"name":"row one","ok":true,"score":-12.75,"tags":["a","bc","def"],"next":null}`
		return "[" + strings.TrimSuffix(strings.Repeat(row+",", n/len(row)), ",") + "]"
	}
	out := map[string][]byte{}
	for name, form := range map[string]string{"request": request, "response": response} {
		out[name+"/100B"] = fmt.Appendf(nil, form, `"abc"`)
		out[name+"/10KiB-text"] = fmt.Appendf(nil, form, text(10<<10))
		out[name+"/1MiB-text"] = fmt.Appendf(nil, form, text(1<<20))
		out[name+"/1MiB-lines"] = fmt.Appendf(nil, form, lines(1<<20))
		out[name+"/1MiB-cjk"] = fmt.Appendf(nil, form, `"`+strings.Repeat("你好世界", 1<<20/12)+`"`)
		out[name+"/10KiB-data"] = fmt.Appendf(nil, form, data(10<<10))
		out[name+"/1MiB-data"] = fmt.Appendf(nil, form, data(1<<20))
	}
	return out
}

func BenchmarkParse(b *testing.B) {
	texts := benchmarkTexts()
	for _, dir := range []string{"request", "response"} {
		for _, size := range []string{"100B", "10KiB-text", "10KiB-data", "1MiB-text", "1MiB-lines", "1MiB-cjk", "1MiB-data"} {
			data := texts[dir+"/"+size]
			b.Run(dir+"/"+size, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := jsonrpc.Parse(data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
