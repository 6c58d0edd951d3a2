package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-roster/roster/jsonrpc"
)

// saver writes the binary content of a result into files.
type saver struct {
	dir  string // "": nothing is saved
	name string // what the names of the files begin with
	n    int    // files so far
}

// save writes a content block into a file of its own, and returns its path; "" if
// the block is not binary, or nothing is to be saved.
func (s *saver) save(raw []byte) (string, error) {
	block, err := jsonrpc.ParseObject(raw)
	if s.dir == "" || err != nil {
		return "", nil //nolint:nilerr // content that is no object is nothing to save
	}
	data, ok := block.Text("data")
	if !ok {
		if block, err = jsonrpc.ParseObject(block.Get("resource")); err != nil {
			return "", nil //nolint:nilerr // likewise
		}
		if data, ok = block.Text("blob"); !ok {
			return "", nil
		}
	}
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", fmt.Errorf("save content: it is not base64: %w", err)
	}
	kind, _ := block.Text("mimeType")
	return s.write(content, extension(kind))
}

// write makes a new file; it never writes over one.
func (s *saver) write(content []byte, extension string) (string, error) {
	const most = 10_000 // names to try
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return "", fmt.Errorf("save content: %w", err)
	}
	for s.n < most {
		s.n++
		path := filepath.Join(s.dir, fmt.Sprintf("%s-%d%s", fileName(s.name), s.n, extension))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			_, err = f.Write(content)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return "", fmt.Errorf("save content: %w", err)
		}
		return path, nil
	}
	return "", fmt.Errorf("save content: %s is full of files of this name", s.dir)
}

// fileName makes a name of somebody else into one that is a file's everywhere.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// extension returns what names of files of a media type end with, the same on
// every system.
func extension(mediaType string) string {
	kind, _, _ := strings.Cut(mediaType, ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav", "audio/wave":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "audio/ogg":
		return ".ogg"
	case "audio/flac":
		return ".flac"
	case "video/mp4":
		return ".mp4"
	case "application/pdf":
		return ".pdf"
	case "application/zip":
		return ".zip"
	}
	return ".bin"
}
