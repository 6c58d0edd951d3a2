package mcp

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// Version is a protocol version, named by its date.
type Version string

// The versions that this module speaks.
const (
	V20241105 Version = "2024-11-05"
	V20250326 Version = "2025-03-26"
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25"
	V20260728 Version = "2026-07-28"

	// Latest is the newest of them, LatestSession the newest that begins
	// with initialize.
	Latest        = V20260728
	LatestSession = V20251125
)

// traits are what a version has that others do not.
type traits struct {
	version Version
	// stateless: every request says its version, client and capabilities;
	// there is no initialize, no session, no request from the server.
	stateless bool
	// versionHeader: HTTP requests carry MCP-Protocol-Version.
	versionHeader bool
	// batches: several messages may come as one JSON array.
	batches bool
	// priming: SSE streams begin with an event that has only an id.
	priming bool
	// anyOutput: outputSchema and structuredContent may be of any JSON type.
	anyOutput bool
	// urlElicitation: elicitation has a URL mode.
	urlElicitation bool
}

// versions has the newest first.
var versions = []traits{
	{version: V20260728, stateless: true, versionHeader: true, anyOutput: true, urlElicitation: true},
	{version: V20251125, versionHeader: true, priming: true, urlElicitation: true},
	{version: V20250618, versionHeader: true},
	{version: V20250326, batches: true},
	{version: V20241105},
}

func (v Version) traits() *traits {
	for i := range versions {
		if versions[i].version == v {
			return &versions[i]
		}
	}
	return &unknown
}

// unknown is what is true of a version that this module does not speak.
var unknown traits

// readVersion decodes a version, those that are known without making a string.
func readVersion(v jsontext.Value) Version {
	for i := range versions {
		if jsonrpc.TextIs(v, string(versions[i].version)) {
			return versions[i].version
		}
	}
	text, _ := jsonrpc.Text(v)
	return Version(text)
}

// Versions returns the versions that this module speaks, newest first.
func Versions() []Version {
	out := make([]Version, len(versions))
	for i, t := range versions {
		out[i] = t.version
	}
	return out
}

// Known reports whether this module speaks the version.
func (v Version) Known() bool {
	return slices.ContainsFunc(versions, func(t traits) bool { return t.version == v })
}

// Stateless reports whether requests of this version stand alone: 2026-07-28
// and later. Earlier versions begin with initialize.
func (v Version) Stateless() bool { return v.traits().stateless }

// HasVersionHeader reports whether HTTP requests name the version in a header.
func (v Version) HasVersionHeader() bool { return v.traits().versionHeader }

// HasBatches reports whether a message may be an array of messages.
func (v Version) HasBatches() bool { return v.traits().batches }

// HasPriming reports whether SSE streams begin with an event that has only an
// id, from which a client can resume.
func (v Version) HasPriming() bool { return v.traits().priming }

// HasAnyOutput reports whether outputSchema and structuredContent need not be
// objects.
func (v Version) HasAnyOutput() bool { return v.traits().anyOutput }

// HasURLElicitation reports whether elicitation has a URL mode.
func (v Version) HasURLElicitation() bool { return v.traits().urlElicitation }

// Negotiate returns the version in which to answer an initialize request that
// asks for v: v itself if it is known and has initialize, else LatestSession.
func Negotiate(v Version) Version {
	if v.Known() && !v.Stateless() {
		return v
	}
	return LatestSession
}

// Best returns the newest version among offered that this module speaks, and
// whether there is one.
func Best(offered []string) (Version, bool) {
	for _, t := range versions {
		if slices.Contains(offered, string(t.version)) {
			return t.version, true
		}
	}
	return "", false
}
