package state

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// KeyPlace is where the key of a Vault is.
type KeyPlace string

// The places.
const (
	// KeyAuto is the keyring of the operating system if one can be reached when
	// the key is made, else a file.
	KeyAuto    KeyPlace = ""
	KeyKeyring KeyPlace = "keyring"
	KeyFile    KeyPlace = "file"
)

// Vault keeps secrets, each in an encrypted file (AES-256-GCM) that only its
// owner may read and that is replaced as a whole. Processes may share the directory;
// unlike in a Store, all of them write. The key is in the keyring of the operating
// system, or in a file beside the secrets: that keeps them from nobody who may
// read the directory, but from backups and searches of single files. Its
// methods may be called from any goroutine. It touches nothing before it is
// used.
type Vault struct {
	dir   string
	place KeyPlace
	log   *slog.Logger

	mu  sync.Mutex // guards key
	key []byte
}

const (
	vaultDir = "tokens"
	// markFile says that the key is in the keyring.
	markFile = "key-in-keyring"
	// keyringService is under which name the keyring shows the key.
	keyringService = "roster"
	// lockPause is how often a lock that another process has is tried.
	lockPause = 20 * time.Millisecond
	// keyringTime is how long the keyring may take to answer.
	keyringTime = 20 * time.Second
)

// ErrConflict says that a secret was replaced by somebody who did not have the
// lock, as can happen on a network file system. What they wrote stays.
var ErrConflict = errors.New("somebody else has replaced it meanwhile")

// NewVault returns the vault of a state directory. A nil log takes nothing.
func NewVault(dir string, place KeyPlace, log *slog.Logger) *Vault {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Vault{dir: filepath.Join(dir, vaultDir), place: place, log: log}
}

// Load returns what is kept under a name of letters and digits; nil: nothing, or
// nothing that can be decrypted with the key.
func (v *Vault) Load(ctx context.Context, name string) ([]byte, error) {
	sealed, err := v.read(name)
	if sealed == nil || err != nil {
		return nil, err
	}
	return v.open(ctx, name, sealed)
}

// Update replaces what is kept under a name by what change returns; nil: by
// nothing. No other Update of the name, in any process, runs meanwhile: it is waited for
// until ctx ends. If change fails, nothing is replaced.
func (v *Vault) Update(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if err := os.MkdirAll(v.dir, private); err != nil {
		return fmt.Errorf("token store: %w", err)
	}
	lock, err := v.lock(ctx, name)
	if err != nil {
		return err
	}
	defer lock.Close()
	before, err := v.read(name)
	if err != nil {
		return err
	}
	var old []byte
	if before != nil {
		if old, err = v.open(ctx, name, before); err != nil {
			return err
		}
	}
	value, err := change(old)
	if err != nil {
		return err
	}
	sealed, err := v.seal(ctx, name, value)
	if err != nil {
		return err
	}
	if now, err := v.read(name); err != nil || !bytes.Equal(now, before) {
		return errors.Join(ErrConflict, err)
	}
	if value == nil {
		err = os.Remove(v.file(name))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = replace(v.file(name), sealed)
	}
	if err != nil {
		return fmt.Errorf("token store: %w", err)
	}
	return nil
}

func (v *Vault) file(name string) string { return filepath.Join(v.dir, name+".token") }

// lock waits for the lock of a name, which ends with the process.
func (v *Vault) lock(ctx context.Context, name string) (*os.File, error) {
	for {
		f, err := lockFile(filepath.Join(v.dir, name+".lock"))
		if !errors.Is(err, ErrLocked) {
			if err != nil {
				err = fmt.Errorf("token store: lock: %w", err)
			}
			return f, err
		}
		timer := time.NewTimer(lockPause/2 + mathrand.N(lockPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("token store: another process has had the lock for too long: %w", context.Cause(ctx))
		}
	}
}

func (v *Vault) read(name string) ([]byte, error) {
	data, err := os.ReadFile(v.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("token store: %w", err)
	}
	return data, nil
}

// seal encrypts a value for one name, under which alone it can be read.
func (v *Vault) seal(ctx context.Context, name string, value []byte) ([]byte, error) {
	aead, err := v.cipher(ctx)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, value, []byte(name)), nil
}

func (v *Vault) open(ctx context.Context, name string, sealed []byte) ([]byte, error) {
	aead, err := v.cipher(ctx)
	if err != nil {
		return nil, err
	}
	if n := aead.NonceSize(); len(sealed) > n {
		if value, err := aead.Open(nil, sealed[:n], sealed[n:], []byte(name)); err == nil {
			return value, nil
		}
	}
	v.log.Warn("a token file cannot be decrypted and counts as missing", "file", v.file(name))
	return nil, nil
}

func (v *Vault) cipher(ctx context.Context) (cipher.AEAD, error) {
	key, err := v.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("key of the token store: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// find returns the key, and makes it if there is none. Who comes first decides
// where it is.
func (v *Vault) find(ctx context.Context) ([]byte, error) {
	v.mu.Lock()
	key := v.key
	v.mu.Unlock()
	if key != nil {
		return key, nil
	}
	key, err := v.fetch(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.key = key
	v.mu.Unlock()
	return key, nil
}

func (v *Vault) fetch(ctx context.Context) ([]byte, error) {
	if err := os.MkdirAll(v.dir, private); err != nil {
		return nil, err
	}
	marked := exists(filepath.Join(v.dir, markFile))
	inFile := exists(filepath.Join(v.dir, keyFile))
	if v.place == KeyFile || inFile && !marked && v.place == KeyAuto {
		return keyIn(v.dir)
	}
	lock, err := v.lock(ctx, keyFile) // one process makes it
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	key, err := v.ring(ctx)
	switch {
	case err == nil:
		return key, os.WriteFile(filepath.Join(v.dir, markFile), nil, 0o600)
	case marked || v.place == KeyKeyring:
		return nil, fmt.Errorf(`the keyring of the operating system cannot be used: %w (roster.tokenStore "file" keeps the key in a file; then log in anew)`, err)
	}
	v.log.Debug("no keyring; the key of the token store is in a file", "err", err)
	return keyIn(v.dir)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// ring returns the key in the keyring, which is asked on another goroutine: it
// may wait for its user to unlock it.
func (v *Vault) ring(ctx context.Context) ([]byte, error) {
	type answer struct {
		key []byte
		err error
	}
	answered := make(chan answer, 1)
	go func() { // ends when the keyring answers; there is one for each attempt
		key, err := ringKey(v.dir)
		answered <- answer{key, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, keyringTime)
	defer cancel()
	select {
	case a := <-answered:
		return a.key, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
}

func ringKey(account string) ([]byte, error) {
	text, err := keyring.Get(keyringService, account)
	if errors.Is(err, keyring.ErrNotFound) {
		key := make([]byte, keySize)
		_, _ = rand.Read(key) // never fails
		return key, keyring.Set(keyringService, account, base64.StdEncoding.EncodeToString(key))
	}
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != keySize {
		return nil, errors.New("what it has is not a key of ours")
	}
	return key, nil
}

// KeyringSecret returns a secret of the user's own from the keyring: "service/
// account", or an account of the service "roster".
func KeyringSecret(name string) (string, error) {
	service, account, ok := strings.Cut(name, "/")
	if !ok {
		service, account = keyringService, name
	}
	secret, err := keyring.Get(service, account)
	if err != nil {
		return "", fmt.Errorf("the keyring's secret %q: %w", name, err)
	}
	return secret, nil
}
