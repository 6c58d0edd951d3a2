package app

import "strings"

// maxInstructions is how many bytes of instructions clients get, from all
// servers together.
const maxInstructions = 2000

// instructions joins what the servers say of how to use them, each under its
// name, cut so that each gets a fair share.
func (a *App) instructions() string {
	type part struct{ name, text string }
	var parts []part
	for _, s := range a.servers.All() {
		if info, ok := s.Info(); ok && strings.TrimSpace(info.Instructions) != "" {
			parts = append(parts, part{s.Name(), strings.TrimSpace(info.Instructions)})
		}
	}
	var b strings.Builder
	room := maxInstructions
	for i, p := range parts {
		head := "# " + p.name + "\n"
		share := room / (len(parts) - i)
		text := cut(p.text, share-len(head)-1)
		if text == "" {
			continue
		}
		b.WriteString(head + text + "\n")
		room -= len(head) + len(text) + 1
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cut shortens a text to at most n bytes, at a character's boundary, and shows
// that it did.
func cut(s string, n int) string {
	const more = "…"
	if len(s) <= n {
		return s
	}
	n -= len(more)
	if n <= 0 {
		return ""
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return strings.TrimSpace(s[:n]) + more
}
