package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/mcp-roster/roster/internal/config"
)

const exampleConfig = `  {
    "mcpServers": {
      "files":  { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"] },
      "remote": { "type": "http", "url": "https://example.com/mcp",
                  "headers": { "Authorization": "Bearer ${REMOTE_TOKEN}" } }
    }
  }`

// configuration is what the files say.
type configuration struct {
	*config.Config
	problems []config.Problem
	files    []string // absolute
}

// load reads the configuration files.
func (p *program) load() (*configuration, error) {
	paths := p.configs
	if len(paths) == 0 {
		path, err := config.DefaultPath()
		if err != nil {
			return nil, fmt.Errorf("%w: name a file with --config", err)
		}
		paths = []string{path}
	}
	c := new(configuration)
	var err error
	c.Config, c.problems, err = config.Load(paths, p.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) && len(p.configs) == 0 {
		return nil, fmt.Errorf("there is no configuration yet: %s does not exist.\n"+
			"Write that file, or name another one with --config. An example:\n\n%s\n\n"+
			"To see Roster at work without one: roster demo", paths[0], exampleConfig)
	}
	if err != nil {
		return nil, err
	}
	if c.Roster.StateDir == "" {
		return nil, errors.New("there is no home directory to keep state in: set ROSTER_STATE_DIR")
	}
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", path, err)
		}
		c.files = append(c.files, abs)
	}
	return c, nil
}

// report prints problems, each on its own line with its place in front.
func (p *program) report(problems []config.Problem) {
	for _, problem := range problems {
		writeln(p.Stderr, problem.String())
	}
}

func (p *program) defaultConfigText() string {
	path, err := config.DefaultPath()
	if err != nil || p.anywhere {
		return "roster/config.json in the user's configuration directory"
	}
	return path
}
