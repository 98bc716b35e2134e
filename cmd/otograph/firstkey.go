package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/web"
)

const firstBalance = 1000 * billing.Unit

//go:embed firstkey.txt
var firstKeyText string

// firstStart creates an account with a key in an empty service, so that a
// person can try it immediately. It prints the key to a terminal, and otherwise
// writes it to a file: standard output may end in a journal that others read.
func (c *serveCmd) firstStart(ctx context.Context, s *service.Service, dir string, log *slog.Logger) error {
	key, err := s.CreateFirstAccount(ctx, "local", firstBalance)
	if err != nil || key == "" {
		return err
	}
	if !term.IsTerminal(int(os.Stdout.Fd())) {
		path := filepath.Join(dir, state.FirstKeyFile)
		if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
			return fmt.Errorf("first API key: %w", err)
		}
		log.InfoContext(ctx, "created the account local with a balance of 1000", "api_key_file", path)
		return nil
	}
	say("%s", strings.NewReplacer("URL", c.url(), "KEY", key).Replace(firstKeyText))
	return nil
}

// showPage prints the address of the page, if there is one, to a terminal.
func (c *serveCmd) showPage() {
	if web.Built() && !strings.HasPrefix(c.Addr, "unix:") && term.IsTerminal(int(os.Stdout.Fd())) {
		say("The page: %s/\n", strings.TrimSuffix(c.url(), c.BasePath))
	}
}
