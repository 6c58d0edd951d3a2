package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// The ways in which a client says who it is at a token endpoint (RFC 7591,
// section 2; OpenID Connect Core, section 9).
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodJWT   = "private_key_jwt"
)

// GrantError is the answer of an authorization server that gives no token (RFC
// 6749, section 5.2).
type GrantError struct {
	Code        string // as "invalid_grant"; "": it did not say
	Description string
	Status      int
}

func (e *GrantError) Error() string {
	text := "the authorization server refused"
	if e.Code != "" {
		text += ": " + e.Code
	} else {
		text += fmt.Sprintf(" with status %d", e.Status)
	}
	if e.Description != "" {
		text += " (" + e.Description + ")"
	}
	return text
}

// final reports whether asking again for the same is of no use.
func (e *GrantError) final() bool {
	switch e.Code {
	case "invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope", "unsupported_grant_type", "access_denied":
		return true
	}
	return false
}

// short makes foreign text fit for a message.
func short(text string) string {
	const most = 200
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// grant asks a token endpoint for a token. params has grant_type and all that
// the grant needs but the client's credentials. It is made with package
// clientcredentials, the only one of x/oauth2 that takes any parameters: a refresh
// through oauth2.Config has no place for the resource that 2026-07-28 requires.
// Redirects are not followed.
func grant(ctx context.Context, c *http.Client, endpoint string, client registration, key *signingKey, params url.Values) (*oauth2.Token, error) {
	conf := clientcredentials.Config{
		ClientID: client.ID, ClientSecret: client.Secret, TokenURL: endpoint,
		EndpointParams: params, AuthStyle: oauth2.AuthStyleInParams,
	}
	switch client.Method {
	case methodBasic:
		conf.AuthStyle = oauth2.AuthStyleInHeader
	case methodNone:
		conf.ClientSecret = ""
	case methodJWT:
		conf.ClientSecret = ""
		if err := key.sign(params, client.ID); err != nil {
			return nil, err
		}
	}
	token, err := conf.Token(context.WithValue(ctx, oauth2.HTTPClient, c))
	if err != nil {
		return nil, grantError(err)
	}
	if t := token.Type(); t != "Bearer" {
		return nil, fmt.Errorf("the authorization server gave a token of type %q; only Bearer is known here", short(t))
	}
	return token, nil
}

// post sends a form to an endpoint other than that for tokens, with the client's
// credentials, and returns the answer.
func post(ctx context.Context, c *http.Client, endpoint string, client registration, key *signingKey, form url.Values) (status int, body []byte, err error) {
	if client.Method != methodBasic {
		form.Set("client_id", client.ID)
	}
	switch client.Method {
	case methodPost:
		form.Set("client_secret", client.Secret)
	case methodJWT:
		if err := key.sign(form, client.ID); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, errors.New("the endpoint is malformed")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if client.Method == methodBasic {
		req.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret))
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, plain(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	return resp.StatusCode, body, err
}

// grantError keeps of a failure what is no secret: not the body.
func grantError(err error) error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		out := &GrantError{Code: short(e.ErrorCode), Description: short(e.ErrorDescription)}
		if e.Response != nil {
			out.Status = e.Response.StatusCode
		}
		return out
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return plain(err)
	}
	if strings.Contains(err.Error(), "parse") { // its text may quote the body
		return errors.New("the token endpoint's answer cannot be read")
	}
	return err
}

// signingKey signs the client's assertions (RFC 7523, section 2.2).
type signingKey struct {
	key      crypto.Signer
	method   jwt.SigningMethod
	audience string // the issuer
}

// readKey reads a private key in PEM. algorithm is as in JWS; "": what fits the
// key. supported has what the server takes; nil: it did not say.
func readKey(data, algorithm, issuer string, supported []string) (*signingKey, error) {
	block, _ := pem.Decode([]byte(data))
	if block == nil {
		return nil, errors.New("private key: expected PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
			if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
				return nil, errors.New("private key: expected PKCS #8, or a key of RSA or of an elliptic curve")
			}
		}
	}
	var fit []string
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		fit = []string{"RS256", "PS256", "RS384", "RS512", "PS384", "PS512"}
	case *ecdsa.PrivateKey:
		fit = []string{map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[k.Curve.Params().BitSize]}
	case ed25519.PrivateKey:
		fit = []string{"EdDSA"}
	}
	if algorithm != "" && !slices.Contains(fit, algorithm) {
		return nil, fmt.Errorf("private key: it does not sign with %s", short(algorithm))
	}
	if algorithm == "" && len(fit) > 0 {
		algorithm = fit[0]
		for _, a := range fit {
			if slices.Contains(supported, a) {
				algorithm = a
				break
			}
		}
	}
	method, signer := jwt.GetSigningMethod(algorithm), parsed.(crypto.Signer)
	if method == nil {
		return nil, errors.New("private key: its kind is not known here")
	}
	return &signingKey{signer, method, issuer}, nil
}

// sign adds an assertion to a form that is good for a minute and once.
func (k *signingKey) sign(form url.Values, client string) error {
	if k == nil {
		return errors.New("private key: there is none")
	}
	now := time.Now()
	signed, err := jwt.NewWithClaims(k.method, jwt.RegisteredClaims{
		Issuer: client, Subject: client, Audience: jwt.ClaimStrings{k.audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)),
	}).SignedString(k.key)
	if err != nil {
		return fmt.Errorf("signing with the private key: %w", err)
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", signed)
	return nil
}
