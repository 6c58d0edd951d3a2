package cli

import "testing"

func TestCheckListen(t *testing.T) { // C-152
	tests := []struct {
		address  string
		insecure bool
		ok       bool
		keys     bool
	}{
		{"", false, true, false},
		{"127.0.0.1:7678", false, true, false},
		{"127.8.8.8:0", false, true, false},
		{"localhost:0", false, true, false},
		{"[::1]:0", false, true, false},
		{"[::ffff:127.0.0.1]:0", false, true, false},
		{":7678", false, false, false},
		{"0.0.0.0:7678", false, false, false},
		{"[::]:7678", false, false, false},
		{"192.0.2.1:7678", false, false, false},
		{"gw.example.com:7678", false, false, false},
		{"127.0.0.1", false, false, false},
		{"0.0.0.0:7678", true, true, false},
		{"7678", true, false, false},
		{"0.0.0.0:7678", false, true, true},
		{"7678", false, false, true},
	}
	for _, tt := range tests {
		if err := checkListen(tt.address, tt.insecure, tt.keys); (err == nil) != tt.ok {
			t.Errorf("checkListen(%q, %v) = %v", tt.address, tt.insecure, err)
		}
	}
}

func TestHosts(t *testing.T) {
	tests := []struct {
		address  string
		insecure bool
		want     string // the only one; "": none
	}{
		{"0.0.0.0:1", false, ""},
		{"0.0.0.0:1", true, "*"},
		{":1", true, "*"},
		{"[::]:1", true, "*"},
		{"192.0.2.1:1", true, "192.0.2.1"},
		{"gw.example.com:1", true, "gw.example.com"},
	}
	for _, tt := range tests {
		got := hosts(tt.address, tt.insecure)
		if (tt.want == "") != (len(got) == 0) || len(got) == 1 && got[0] != tt.want {
			t.Errorf("hosts(%q, %v) = %q, want %q", tt.address, tt.insecure, got, tt.want)
		}
	}
}

func TestEndpointURL(t *testing.T) {
	tests := []struct{ typed, want string }{
		{"http://127.0.0.1:7678", "http://127.0.0.1:7678/mcp"},
		{"http://127.0.0.1:7678/", "http://127.0.0.1:7678/mcp"},
		{"https://example.com/x/mcp", "https://example.com/x/mcp"},
		{"127.0.0.1:7678", ""},
		{"ftp://example.com", ""},
		{"http://", ""},
	}
	for _, tt := range tests {
		if got, err := endpointURL(tt.typed); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("endpointURL(%q) = %q, %v; want %q", tt.typed, got, err, tt.want)
		}
	}
}

func TestNearestNames(t *testing.T) {
	names := []string{"a__search", "b__search", "c__find", "d__search", "e__search"}
	tests := []struct{ name, want string }{
		{"search", ": did you mean a__search or b__search or d__search?"},
		{"c__fnd", ": did you mean c__find?"},
		{"quite another", ": 'roster list' shows what is"},
	}
	for _, tt := range tests {
		if got := nearestNames(tt.name, names); got != tt.want {
			t.Errorf("nearestNames(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}
