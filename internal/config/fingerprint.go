package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"reflect"
)

// Fingerprint stands for the servers that run: their names and order, and all that
// their entries say, credentials and the values of variables included. It is a hash,
// from which nothing can be read.
func (c *Config) Fingerprint() string {
	h := sha256.New()
	for _, s := range c.Servers {
		if !s.Disabled {
			digest(h, reflect.ValueOf(s.placeless()))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// digest hashes a value and what it points to, with lengths in front, so that
// different values do not look the same.
func digest(h hash.Hash, v reflect.Value) {
	number := func(n uint64) { h.Write(binary.AppendUvarint(nil, n)) }
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			digest(h, v.Field(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			number(0)
			return
		}
		number(1)
		digest(h, v.Elem())
	case reflect.Slice:
		number(uint64(v.Len()))
		for i := range v.Len() {
			digest(h, v.Index(i))
		}
	case reflect.String:
		number(uint64(v.Len()))
		h.Write([]byte(v.String()))
	default: // what holds no text: numbers, maps of them
		h.Write(fmt.Appendf(nil, "%v ", v))
	}
}
