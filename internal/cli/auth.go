package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/auth"
)

func (p *program) authCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Log in to servers, and out",
		Args:  exactArgs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.loginCommand(), p.loginStatusCommand(), p.logoutCommand())
	return cmd
}

// loginOptions are the flags of login.
type loginOptions struct{ device, noBrowser bool }

func (p *program) loginCommand() *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in to a server",
		Long: `Opens the page at which you log in to a server that wants it, and keeps the
tokens that come of it. A gateway of the same configuration, if one runs,
uses them at once; it refreshes them by itself from then on.

Without a browser on this machine, open the page that is printed on another
one and paste the address at which it ends; or use --device, where the
server's login knows that.

` + exitCodes,
		Example: `  roster auth login github
  roster auth login github --no-browser
  roster auth login github --device`,
		Args:              exactArgs("the name of the server"),
		ValidArgsFunction: p.completeServer(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withLogin(args[0], func(a *auth.OAuth) error { return p.login(cmd.Context(), a, args[0], o) })
		},
	}
	p.configFlag(cmd)
	p.logFlag(cmd, "what to log: debug, info, warn or error (default: nothing)")
	cmd.Flags().BoolVar(&o.device, "device", false, "log in with a code that you enter on another device")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "print the page and open nothing")
	return cmd
}

func (p *program) loginStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [SERVER]",
		Short: "Show to which servers you are logged in",
		Long: `Shows what is kept of logins. It asks no server: whether one still takes its
token is seen when it is used, and in 'roster status'.

` + exitCodes,
		Example: "  roster auth status\n  roster auth status github -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("there is an argument too many: %q", args[1])
			}
			return nil
		},
		ValidArgsFunction: p.completeServer(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return p.loginStatus(cmd.Context(), args) },
	}
	p.configFlag(cmd)
	return cmd
}

func (p *program) logoutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logout SERVER",
		Short: "Log out of a server",
		Long: `Forgets the tokens of a server, and has them revoked where that is known how.

` + exitCodes,
		Example:           "  roster auth logout github",
		Args:              exactArgs("the name of the server"),
		ValidArgsFunction: p.completeServer(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withLogin(args[0], func(a *auth.OAuth) error {
				err := a.Logout(cmd.Context())
				if err == nil {
					writef(p.out, "Logged out of %s.\n", clean(args[0]))
				}
				return err
			})
		},
	}
	p.configFlag(cmd)
	return cmd
}

// withLogin opens the login to a server of the configuration.
func (p *program) withLogin(name string, do func(*auth.OAuth) error) error {
	conf, err := p.load()
	if err != nil {
		return err
	}
	log, err := p.logger("")
	if err != nil {
		return err
	}
	a, err := app.OpenLogin(conf.Config, conf.files, name, version(), log)
	if err != nil {
		return err
	}
	defer a.Close()
	return do(a)
}

func (p *program) login(ctx context.Context, a *auth.OAuth, name string, o loginOptions) error {
	if o.device {
		if err := a.Device(ctx, p.showCode); err != nil {
			return err
		}
		writef(p.out, "Logged in to %s.\n", clean(name))
		return nil
	}
	l, err := a.Begin(ctx, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	opened := !o.noBrowser && p.browse(ctx, l.URL) == nil
	if opened {
		writef(p.Stderr, "Log in to %s in the browser. If none has opened, open this page:\n\n  %s\n\n", clean(name), l.URL)
	} else {
		writef(p.Stderr, "Open this page to log in to %s:\n\n  %s\n\n"+
			"If the browser is on another machine, paste here the address at which it ends:\n", clean(name), l.URL)
	}
	if !opened || isTerminal(p.Stdin) {
		go p.readPasted(ctx, l) // ends with the input, at the latest with the process
	}
	if err := l.Wait(ctx); err != nil {
		return err
	}
	writef(p.out, "Logged in to %s.\n", clean(name))
	return nil
}

// readPasted takes lines of the input for addresses at which a login has ended.
func (p *program) readPasted(ctx context.Context, l *auth.Login) {
	lines := bufio.NewScanner(p.Stdin)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := l.Paste(ctx, lines.Text()); err != nil {
			writef(p.Stderr, "%s\n", clean(err.Error()))
		}
	}
}

func (p *program) showCode(c auth.Code) {
	writef(p.Stderr, "Open %s and enter the code %s\n", clean(c.URL), p.paint(p.Stderr, bold, clean(c.Code)))
	if c.Complete != "" {
		writef(p.Stderr, "or open %s\n", clean(c.Complete))
	}
}

// browse opens a page with $BROWSER, or the system's browser.
func (p *program) browse(ctx context.Context, url string) error {
	argv := map[string][]string{
		"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"},
	}[runtime.GOOS]
	if argv == nil {
		argv = []string{"xdg-open"}
		_, x := p.LookupEnv("DISPLAY")
		if _, wayland := p.LookupEnv("WAYLAND_DISPLAY"); !x && !wayland {
			argv = nil
		}
	}
	if own, _ := p.LookupEnv("BROWSER"); own != "" {
		argv = []string{own}
	}
	if argv == nil {
		return errors.New("there is no screen")
	}
	const within = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return exec.CommandContext(ctx, argv[0], append(argv[1:], url)...).Run()
}

// loginRow is the login to one server, as it is printed.
type loginRow struct {
	Server    string     `json:"server"`
	LoggedIn  bool       `json:"loggedIn"`
	Issuer    string     `json:"issuer,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	Renewable bool       `json:"renewable,omitempty"`
	Scopes    []string   `json:"scopes,omitempty"`
	Wanted    []string   `json:"wanted,omitempty"`
	Error     string     `json:"error,omitempty"`
}

func (p *program) loginStatus(ctx context.Context, only []string) error {
	conf, err := p.load()
	if err != nil {
		return err
	}
	rows := []loginRow{}
	for _, s := range conf.Servers {
		if len(only) > 0 && s.Name != only[0] {
			continue
		}
		a, err := app.OpenLogin(conf.Config, conf.files, s.Name, version(), nil)
		if err != nil {
			if len(only) > 0 {
				return err
			}
			continue // it is none that is logged in to
		}
		st, err := a.Status(ctx)
		a.Close()
		row := loginRow{
			Server: s.Name, LoggedIn: st.LoggedIn, Issuer: st.Issuer, Renewable: st.Renewable, Scopes: st.Scopes, Wanted: st.Wanted,
		}
		if !st.Expires.IsZero() {
			row.Expires = &st.Expires
		}
		if err != nil {
			row.Error = err.Error()
		}
		rows = append(rows, row)
	}
	if len(only) > 0 && len(rows) == 0 {
		return fmt.Errorf("there is no server %q in the configuration", only[0])
	}
	if p.json() {
		return p.printJSON(rows)
	}
	p.printLogins(rows)
	return nil
}

func (p *program) printLogins(rows []loginRow) {
	t := table{header: []string{"SERVER", "LOGIN", "TOKEN", "ISSUER", "SCOPES"}}
	for _, r := range rows {
		login, token := "-", ""
		switch {
		case r.Error != "":
			login, token = "broken", r.Error
		case r.LoggedIn:
			login = "yes"
			token = "does not say when it ends"
			if r.Expires != nil {
				token = "ends in " + max(time.Until(*r.Expires), 0).Round(time.Second).String()
			}
			if r.Renewable {
				token += ", refreshed"
			}
		case r.Issuer != "":
			login = "no"
		}
		scopes := strings.Join(r.Scopes, " ")
		if len(r.Wanted) > 0 {
			scopes += " (wanted: " + strings.Join(r.Wanted, " ") + ")"
		}
		t.rows = append(t.rows, []string{r.Server, login, token, r.Issuer, scopes})
	}
	p.printTable(p.out, t)
}
