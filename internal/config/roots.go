package config

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// readRoots reads folders that servers may be told to work in: paths, which if
// relative count from the workspace folder, or file: URIs. They become URIs. The
// list is empty, and not nil, if the file has an empty one; nil if something in it is
// wrong.
func readRoots(r *reader, m member) []string {
	list, ok := r.elements(m)
	if !ok {
		return nil
	}
	roots, wrong := []string{}, false
	for _, e := range list {
		text, ok := r.text(e)
		if !ok {
			wrong = true
			continue
		}
		root, why := rootURI(text, r.expander.folder)
		if why != "" {
			r.fail(e.value.StartOffset, e.field, "%s", why)
			wrong = true
			continue
		}
		if !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	if wrong {
		return nil
	}
	return roots
}

// rootURI returns the URI of a root, or what is wrong with it.
func rootURI(text, folder string) (uri, why string) {
	switch {
	case text == "":
		return "", "expected a folder or a file: URI"
	case strings.HasPrefix(text, "file:"):
		if u, err := url.Parse(text); err != nil || u.Path == "" {
			return "", `a file: URI has an absolute path, such as "file:///home/me"`
		}
		return text, ""
	case strings.Contains(text, "://"):
		return "", "a root is a folder or a file: URI" // 2025-11-25, client/roots, Root
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(folder, text)
	}
	path := filepath.ToSlash(filepath.Clean(text))
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), ""
}
