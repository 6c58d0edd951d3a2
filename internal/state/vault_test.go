package state_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/mcp-roster/roster/internal/state"
)

const vaultSecret = "CANARY-of-the-vault"

func put(ctx context.Context, t *testing.T, v *state.Vault, name, value string) {
	t.Helper()
	if err := v.Update(ctx, name, func([]byte) ([]byte, error) { return []byte(value), nil }); err != nil {
		t.Fatal(err)
	}
}

func TestVault(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	v := state.NewVault(dir, state.KeyFile, nil)
	if got, err := v.Load(ctx, "a"); got != nil || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	put(ctx, t, v, "a", vaultSecret)
	failed := errors.New("no")
	if err := v.Update(ctx, "a", func(old []byte) ([]byte, error) {
		if string(old) != vaultSecret {
			t.Errorf("old is %q", old)
		}
		return []byte("lost"), failed
	}); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	other := state.NewVault(dir, state.KeyAuto, nil) // takes the key that is there
	if got, err := other.Load(ctx, "a"); string(got) != vaultSecret || err != nil {
		t.Errorf("another process reads %q, %v", got, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "tokens"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		file := filepath.Join(dir, "tokens", e.Name())
		data, err := os.ReadFile(file)
		if err != nil || bytes.Contains(data, []byte("CANARY")) {
			t.Errorf("%s: %v, or it has the secret in clear", file, err)
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
	// A file under another name, or with a byte changed, is not believed.
	sealed, err := os.ReadFile(filepath.Join(dir, "tokens", "a.token"))
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, data := range map[string][]byte{"b": sealed, "c": changed, "d": nil} {
		if err := os.WriteFile(filepath.Join(dir, "tokens", name+".token"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Load(ctx, name); got != nil || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if err := v.Update(ctx, "a", func([]byte) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Load(ctx, "a"); got != nil || err != nil {
		t.Errorf("removed, and %q, %v", got, err)
	}
}

// Who writes without the lock is not overwritten.
func TestVault_Conflict(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	v := state.NewVault(dir, state.KeyFile, nil)
	put(ctx, t, v, "a", "first")
	put(ctx, t, v, "a", "second")
	file := filepath.Join(dir, "tokens", "a.token")
	winner, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put(ctx, t, v, "a", "third")
	err = v.Update(ctx, "a", func([]byte) ([]byte, error) {
		return []byte("loser"), os.WriteFile(file, winner, 0o600)
	})
	if !errors.Is(err, state.ErrConflict) {
		t.Errorf("error %v", err)
	}
	if got, err := v.Load(ctx, "a"); string(got) != "second" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Updates wait for each other, and give up when they may wait no longer.
func TestVault_Lock(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	vaults := []*state.Vault{state.NewVault(dir, state.KeyFile, nil), state.NewVault(dir, state.KeyFile, nil)}
	var counting sync.WaitGroup
	const each = 20
	for i := range 4 {
		counting.Go(func() {
			for range each {
				if err := vaults[i%2].Update(ctx, "n", func(old []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(old))
					return []byte(strconv.Itoa(n + 1)), nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	counting.Wait()
	if got, err := vaults[0].Load(ctx, "n"); string(got) != strconv.Itoa(4*each) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	err := vaults[0].Update(ctx, "n", func([]byte) ([]byte, error) {
		short, cancel := context.WithCancel(ctx)
		cancel()
		if err := vaults[1].Update(short, "n", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestVault_Keyring(t *testing.T) {
	keyring.MockInit()
	dir, ctx := t.TempDir(), t.Context()
	put(ctx, t, state.NewVault(dir, state.KeyAuto, nil), "a", vaultSecret)
	if got, err := state.NewVault(dir, state.KeyAuto, nil).Load(ctx, "a"); string(got) != vaultSecret || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tokens", "key")); err == nil {
		t.Error("the key is in a file, too")
	}
	keyring.MockInitWithError(errors.New("locked"))
	if _, err := state.NewVault(dir, state.KeyAuto, nil).Load(ctx, "a"); err == nil {
		t.Error("no error, though the keyring cannot be used")
	}
	fresh := t.TempDir()
	put(ctx, t, state.NewVault(fresh, state.KeyAuto, nil), "a", vaultSecret)
	if _, err := os.Stat(filepath.Join(fresh, "tokens", "key")); err != nil {
		t.Errorf("without a keyring: %v", err)
	}
	if err := state.NewVault(t.TempDir(), state.KeyKeyring, nil).Update(ctx, "a", func([]byte) ([]byte, error) { return nil, nil }); err == nil {
		t.Error("no error, though the keyring was asked for")
	}
}
