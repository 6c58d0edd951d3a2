package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Bearer says where a token is, as that which a server's requests carry. One of
// its fields is set.
type Bearer struct {
	Token   string   // itself
	File    string   // absolute; read again when the server refuses the token
	Keyring string   // name in the keyring of the operating system
	Command []string // prints it; run again when the token ends or is refused
}

// OAuth says how to log in to a server that wants it.
type OAuth struct {
	// Off: there is no login, whatever the server answers.
	Off                    bool
	ClientID, ClientSecret string
	// ClientMetadataURL is a client ID where the authorization server reads the
	// document at it, and ClientID is "".
	ClientMetadataURL string
	// PrivateKey, in PEM, is in the place of the secret, Algorithm what it signs
	// with; "": what fits the key.
	PrivateKey, Algorithm string
	// Issuer is the authorization server; "": which the server names.
	Issuer string
	// Scopes are asked for; nil: which the server asks for.
	Scopes []string
	// Redirect is the URL on loopback at which logins end; "": at any port.
	Redirect string
	// ClientCredentials: the client acts on its own behalf, nobody logs in.
	ClientCredentials bool
	// Assertion is a JWT of somebody whom the authorization server trusts, in the
	// place of a secret, if ClientCredentials; nil: there is none.
	Assertion *Bearer
}

// String and GoString say no more than that there is one: the fields are secret.
func (b *Bearer) String() string { return hidden }

// GoString is String.
func (b *Bearer) GoString() string { return hidden }

// String says no more than that there is one: fields of it are secret.
func (o *OAuth) String() string { return hidden }

// GoString is String.
func (o *OAuth) GoString() string { return hidden }

// readBearer reads a token, or an object that says where it is.
func readBearer(r *reader, m member, d *draft) { d.Bearer = readSecret(r, m) }

func readSecret(r *reader, m member) *Bearer {
	if m.value.Value.Kind() == '"' {
		token, ok := r.text(m)
		if ok && strings.TrimSpace(token) == "" {
			r.fail(m.value.StartOffset, m.field, "the token is empty")
		}
		return &Bearer{Token: strings.TrimSpace(token)}
	}
	members, ok := r.object(m)
	if !ok {
		return nil
	}
	var b Bearer
	schema[Bearer]{fields: []field[Bearer]{
		{[]string{"env"}, func(r *reader, m member, b *Bearer) {
			if name, ok := r.literal(m); ok {
				if b.Token, ok = r.expander.env.get(name); !ok || b.Token == "" {
					r.fail(m.value.StartOffset, m.field, "environment variable %s is not set", printable(name))
				}
			}
		}},
		{[]string{"token", "value"}, func(r *reader, m member, b *Bearer) { b.Token, _ = r.text(m) }},
		{[]string{"file"}, func(r *reader, m member, b *Bearer) { readPath(r, m, &b.File) }},
		{[]string{"keyring"}, func(r *reader, m member, b *Bearer) { b.Keyring, _ = r.text(m) }},
		{[]string{"command"}, func(r *reader, m member, b *Bearer) { b.Command = readTexts(r, m) }},
	}}.read(r, members, &b)
	set := 0
	for _, is := range []bool{b.Token != "", b.File != "", b.Keyring != "", len(b.Command) > 0} {
		if is {
			set++
		}
	}
	if set != 1 && r.failure == nil {
		r.fail(m.value.StartOffset, m.field, `needs one of "env", "file", "keyring" and "command" (a list of the program and its arguments)`)
	}
	return &b
}

// readOAuth reads how to log in; true is by what the server says, false not at
// all.
func readOAuth(r *reader, m member, d *draft) {
	switch m.value.Value.Kind() {
	case 't', 'f':
		on, _ := r.boolean(m)
		d.OAuth = &OAuth{Off: !on}
		return
	}
	if members, ok := r.object(m); ok {
		d.OAuth = readLogin(r, members, nil)
	}
}

// readLogin reads the keys of "oauth". Those that are silent say nothing here.
func readLogin(r *reader, members []member, silent []string) *OAuth {
	var o OAuth
	text := func(pick func(*OAuth) *string) func(*reader, member, *OAuth) {
		return func(r *reader, m member, o *OAuth) { *pick(o), _ = r.text(m) }
	}
	schema[OAuth]{fields: []field[OAuth]{
		{[]string{"clientId", "client_id"}, text(func(o *OAuth) *string { return &o.ClientID })},
		{[]string{"clientSecret", "client_secret"}, text(func(o *OAuth) *string { return &o.ClientSecret })},
		{[]string{"clientMetadataUrl", "client_metadata_url"}, readClientMetadata},
		{[]string{"privateKey", "private_key"}, text(func(o *OAuth) *string { return &o.PrivateKey })},
		{[]string{"algorithm"}, text(func(o *OAuth) *string { return &o.Algorithm })},
		{[]string{"issuer"}, readIssuer},
		{[]string{"scopes", "scope"}, readScopes},
		{[]string{"redirectUri", "redirect_uri"}, readRedirect},
		{[]string{"redirectPort", "callbackPort"}, func(r *reader, m member, o *OAuth) {
			if port, ok := r.count(m, 1, 65535); ok {
				o.Redirect = "http://localhost:" + strconv.Itoa(port) + "/callback"
			}
		}},
		{[]string{"grant", "grantType", "grant_type"}, readGrant},
		{[]string{"assertion"}, func(r *reader, m member, o *OAuth) { o.Assertion = readSecret(r, m) }},
	}, silent: silent}.read(r, members, &o)
	switch at := members; {
	case len(at) == 0 || r.failure != nil:
	case o.Assertion != nil:
		o.ClientCredentials = true
	case o.ClientCredentials && (o.ClientID == "" || o.ClientSecret == "" && o.PrivateKey == ""):
		r.fail(at[0].at, at[0].field, `client_credentials needs "clientId", and "clientSecret" or "privateKey"; jwt-bearer needs an "assertion"`)
	case o.ClientSecret != "" && o.ClientID == "", o.PrivateKey != "" && o.ClientID == "":
		r.fail(at[0].at, at[0].field, `a secret or a key is of a client: "clientId" is missing`)
	}
	return &o
}

func readGrant(r *reader, m member, o *OAuth) {
	switch s, ok := r.literal(m); {
	case !ok || s == "authorization_code":
	case s == "client_credentials", s == "jwt-bearer":
		o.ClientCredentials = true
	default:
		r.fail(m.value.StartOffset, m.field, `%s is not a grant; it is "authorization_code", "client_credentials" or "jwt-bearer"`, quote(s))
	}
}

func readIssuer(r *reader, m member, o *OAuth) {
	s, ok := r.text(m)
	if u, err := url.Parse(s); ok && (err != nil || u.Host == "" || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http") {
		r.fail(m.value.StartOffset, m.field, "expected the issuer as the authorization server has it, such as https://auth.example.com")
		return
	}
	o.Issuer = s
}

func readClientMetadata(r *reader, m member, o *OAuth) {
	s, ok := r.text(m)
	if u, err := url.Parse(s); ok && (err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "") {
		r.fail(m.value.StartOffset, m.field, "expected an https URL with a path")
		return
	}
	o.ClientMetadataURL = s
}

func readRedirect(r *reader, m member, o *OAuth) {
	s, ok := r.text(m)
	if !ok {
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) || u.RawQuery != "" || u.Fragment != "" {
		r.fail(m.value.StartOffset, m.field, "expected http on loopback, such as http://127.0.0.1:8765/callback")
		return
	}
	o.Redirect = s
}

// readScopes reads a list, or a string with spaces between.
func readScopes(r *reader, m member, o *OAuth) {
	if m.value.Value.Kind() == '"' {
		if s, ok := r.text(m); ok {
			o.Scopes = strings.Fields(s)
		}
		return
	}
	o.Scopes = readTexts(r, m)
}

// readAuth reads another program's way to say all of it: an object with a "type".
func readAuth(r *reader, m member, d *draft) {
	members, ok := r.object(m)
	if !ok {
		return
	}
	var kind, header, value string
	var rest []member
	for _, e := range members {
		switch e.name {
		case "type":
			kind, _ = r.literal(e)
		case "header", "name":
			header, _ = r.text(e)
		case "token", "value":
			value, _ = r.text(e)
		default:
			rest = append(rest, e)
		}
	}
	switch strings.ToLower(kind) {
	case "none":
		d.OAuth = &OAuth{Off: true}
	case "bearer":
		if value == "" && r.failure == nil {
			r.fail(m.at, m.field, `a bearer needs a "token"`)
		}
		d.Bearer = &Bearer{Token: value}
	case "header":
		if !isToken(header) || value == "" {
			if r.failure == nil {
				r.fail(m.at, m.field, `a header needs its name, "header", and a "value"`)
			}
			return
		}
		d.Headers = append(d.Headers, Pair{header, value})
	case "oauth", "oauth2":
		d.OAuth = readLogin(r, rest, nil)
	default:
		r.fail(m.at, m.field, `"type" must be bearer, header or oauth`)
	}
}

// checkLogin looks at how a server is authorized as a whole.
func (d *draft) checkLogin(r *reader, at int) {
	authorized := slices.ContainsFunc(d.Headers, func(p Pair) bool { return strings.EqualFold(p.Name, "Authorization") })
	switch {
	case d.URL == "" && (d.Bearer != nil || d.OAuth != nil && !d.OAuth.Off):
		r.warn(at, "", `"bearer" and "oauth" have no effect on a server with "command"; it takes credentials from "env"`)
	case d.Bearer != nil && authorized:
		r.fail(at, "", `has both "bearer" and a header Authorization; it can only have one`)
	case d.Bearer != nil && d.OAuth != nil && !d.OAuth.Off:
		r.fail(at, "", `has both "bearer" and "oauth"; it can only have one`)
	case authorized && d.OAuth != nil && !d.OAuth.Off:
		r.fail(at, "", `has both "oauth" and a header Authorization; it can only have one`)
	}
}
