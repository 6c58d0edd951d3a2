package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// table is what is printed as columns.
type table struct {
	header []string
	rows   [][]string
	// style returns the style of a cell on a terminal; nil: all are plain.
	style func(column int, cell string) style
}

// printTable prints a table on a terminal, else lines of fields with tabs between.
func (p *program) printTable(w io.Writer, t table) {
	if !isTerminal(w) {
		for _, row := range t.rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = clean(cell)
			}
			writeln(w, strings.Join(cells, "\t"))
		}
		return
	}
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(clean(cell)))
		}
	}
	p.printRow(w, t.header, widths, func(int, string) style { return bold })
	for _, row := range t.rows {
		p.printRow(w, row, widths, t.style)
	}
}

// printRow prints a line of a table, cut where the terminal ends.
func (p *program) printRow(w io.Writer, row []string, widths []int, styleOf func(int, string) style) {
	left := width(w)
	var b strings.Builder
	for i, cell := range row {
		text := shorten(clean(cell), left)
		left -= widths[i] + 2
		padding := strings.Repeat(" ", max(0, widths[i]+2-utf8.RuneCountInString(text)))
		if i == len(row)-1 || left <= 0 {
			padding = ""
		}
		if styleOf != nil {
			text = p.paint(w, styleOf(i, cell), text)
		}
		b.WriteString(text + padding)
		if left <= 0 {
			break
		}
	}
	writeln(w, strings.TrimRight(b.String(), " "))
}

// clean makes a text of somebody else into one that fits on a line and moves
// nothing on a terminal.
func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// printable is a text of somebody else as it may go to w: as it is, but that a
// terminal gets no control characters beside line breaks and tabs.
func printable(w io.Writer, s string) string {
	if !isTerminal(w) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// shorten cuts a text to at most n characters and shows that it did.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 2 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// printLine prints a text that ends with a line break, whether it had one or not.
func printLine(w io.Writer, text string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	write(w, text)
}

// printJSON prints a value of ours.
func (p *program) printJSON(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printArray prints raw values as an array, each as it is on a line of its own.
func (p *program) printArray(items []item) error {
	var b bytes.Buffer
	b.WriteString("[")
	for i, it := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(oneLine(it.raw))
	}
	b.WriteString("\n]\n")
	_, err := p.out.Write(b.Bytes())
	return err
}

// oneLine returns raw JSON without line breaks; most has none.
func oneLine(raw []byte) []byte {
	if !bytes.ContainsAny(raw, "\n\r") {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// indent returns raw JSON laid out for reading; its numbers and strings are
// spelled as they were.
func indent(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
