package state

import (
	"crypto/sha256"
	"encoding/hex"
)

// digest names any text by letters and digits.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:10])
}

// DirFor returns the name of the directory, below a common one, for the state
// of the configuration in these files (absolute paths).
func DirFor(files []string) string {
	all := ""
	for _, f := range files {
		all += f + "\x00"
	}
	return digest(all)
}
