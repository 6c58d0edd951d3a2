package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Bearer is a token that somebody else keeps: a file or a command has it. It is
// read when it is first needed, when it has ended, and when the server
// refuses it. Its methods may be called from any goroutine.
type Bearer struct {
	read Source

	slot chan struct{} // one slot: it is being read

	mu     sync.Mutex // guards the fields below
	token  string
	expiry time.Time // zero: not known
}

// Source reads a secret that somebody else keeps. A zero expiry is not known.
type Source func(ctx context.Context) (secret string, expiry time.Time, err error)

// maxToken is the most bytes that a file or a command may give.
const maxToken = 1 << 20

// commandTime is how long a command may take.
const commandTime = 30 * time.Second

// File is the content of a file, but for white space around it.
func File(file string) Source {
	return func(context.Context) (string, time.Time, error) {
		f, err := os.Open(file)
		if err != nil {
			return "", time.Time{}, err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxToken))
		return strings.TrimSpace(string(data)), time.Time{}, err
	}
}

// Fixed is a secret that does not change.
func Fixed(secret string) Source {
	return func(context.Context) (string, time.Time, error) { return secret, time.Time{}, nil }
}

// Command is the token that a command prints: alone, or as an object
// with "access_token" or "token" and, if it ends, "expires_in" (seconds) or
// "expires_at" (RFC 3339). There is no shell. What the command prints is shown
// to nobody, also when it fails. env is its environment.
func Command(argv, env []string) Source {
	return func(ctx context.Context) (string, time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env, cmd.WaitDelay = env, time.Second
		out, err := cmd.Output()
		if err != nil {
			return "", time.Time{}, fmt.Errorf("the command for the token: %w", err)
		}
		return readToken(out)
	}
}

func readToken(out []byte) (string, time.Time, error) {
	out = bytes.TrimSpace(out)
	if len(out) == 0 || out[0] != '{' {
		return string(out), time.Time{}, nil
	}
	var t struct {
		AccessToken string    `json:"access_token"`
		Token       string    `json:"token"`
		ExpiresIn   int64     `json:"expires_in"`
		ExpiresAt   time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal(out, &t); err != nil {
		return "", time.Time{}, errors.New("the command for the token printed an object that cannot be read")
	}
	if t.AccessToken == "" {
		t.AccessToken = t.Token
	}
	if t.ExpiresAt.IsZero() && t.ExpiresIn > 0 {
		t.ExpiresAt = time.Now().Add(time.Duration(min(t.ExpiresIn, 1<<31)) * time.Second)
	}
	return t.AccessToken, t.ExpiresAt, nil
}

// NewBearer returns the token that read returns, which is called by one at a
// time.
func NewBearer(read Source) *Bearer {
	return &Bearer{read: read, slot: make(chan struct{}, 1)}
}

// Authorization returns the value of the Authorization field.
func (b *Bearer) Authorization(ctx context.Context) (string, error) {
	b.mu.Lock()
	token, expiry := b.token, b.expiry
	b.mu.Unlock()
	if token == "" || !expiry.IsZero() && time.Until(expiry) < 10*time.Second {
		if err := b.renew(ctx, token); err != nil {
			return "", err
		}
		b.mu.Lock()
		token = b.token
		b.mu.Unlock()
	}
	return "Bearer " + token, nil
}

// Refused reads the token again. The request is made again if it is another one.
func (b *Bearer) Refused(ctx context.Context, status int, authorization string, _ []string) (bool, error) {
	if status != 401 {
		return false, nil
	}
	used := strings.TrimPrefix(authorization, "Bearer ")
	if err := b.renew(ctx, used); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.token != used, nil
}

// renew reads the token, unless somebody has got another one than used meanwhile.
func (b *Bearer) renew(ctx context.Context, used string) error {
	select {
	case b.slot <- struct{}{}:
		defer func() { <-b.slot }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.mu.Lock()
	other := b.token != used && b.token != ""
	b.mu.Unlock()
	if other {
		return nil
	}
	token, expiry, err := b.read(ctx)
	switch {
	case err != nil:
		return err
	case token == "":
		return errors.New("there is no token: what should have it is empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("the token has a character that none has: is it more than the token?")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token, b.expiry = token, expiry
	return nil
}
