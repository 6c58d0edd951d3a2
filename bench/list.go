package main

import (
	"fmt"
	"net/http"
	"sync"
)

// A listHandler answers every request with the same list of tools, encoded
// once. It is what the lists of a gateway are compared with.
type listHandler struct {
	result []byte    // what follows the id
	bodies sync.Pool // of *[]byte
}

func newListHandler(servers, tools int) *listHandler {
	b := []byte(`,"result":{"resultType":"complete","tools":[`)
	for i := range servers {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTools(b, serverName(i)+"__", tools)
	}
	b = append(b, `],"ttlMs":0,"cacheScope":"private"}}`...)
	return &listHandler{result: b, bodies: sync.Pool{New: func() any { return new([]byte) }}}
}

// serverName returns the name of server n in the gateway's configuration.
func serverName(n int) string { return fmt.Sprintf("s%02d", n+1) }

func (l *listHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body := l.bodies.Get().(*[]byte)
	defer l.bodies.Put(body)
	var err error
	if *body, err = readBody(req, (*body)[:0]); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a, b, ok := member(*body, "id")
	if !ok {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	writeJSON(w, []byte(`{"jsonrpc":"2.0","id":`), (*body)[a:b], l.result)
}
