package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/service"
)

type userCmd struct {
	Create userCreateCmd `cmd:"" help:"Create a user with a password."`
	Passwd userPasswdCmd `cmd:"" help:"Change a user's password and revoke the user's access tokens."`
	Logout userLogoutCmd `cmd:"" help:"Revoke the access tokens of a user, or of --all users; the passwords stay valid."`
	Delete userDeleteCmd `cmd:"" help:"Delete a user and revoke the user's access tokens."`
}

// passwordFlag is a password given by the flag or at a prompt.
type passwordFlag struct {
	Password string `env:"OTOGRAPH_PASSWORD" help:"Password; prompted for when not set."`
}

func (f passwordFlag) read() (string, error) {
	if f.Password != "" {
		return f.Password, nil
	}
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		b, err := io.ReadAll(io.LimitReader(os.Stdin, 4096))
		if p := strings.TrimRight(string(b), "\r\n"); err == nil && p != "" {
			return p, nil
		}
		return "", &usageError{errors.New("a password is required: use --password or standard input")}
	}
	warn("Password: ")
	first, err := term.ReadPassword(fd)
	if err != nil {
		return "", err
	}
	warn("\nOnce more: ")
	second, err := term.ReadPassword(fd)
	warn("\n")
	if err == nil && string(first) != string(second) {
		err = errors.New("the two passwords differ")
	}
	return string(first), err
}

type userCreateCmd struct {
	storeFlags
	passwordFlag
	Account  string `arg:"" help:"Account, by name or id."`
	Username string `arg:""`
}

func (c *userCreateCmd) Run(ctx context.Context) error {
	password, err := c.read()
	if err != nil {
		return err
	}
	return c.changeAccount(ctx, "user create", c.Account, c.Username, func(s *stores, a accounts.Account) error {
		u, err := s.Accounts.CreateUser(ctx, a.ID, c.Username, password)
		if err != nil {
			return fmt.Errorf("user %q: %w", c.Username, err)
		}
		say("%s\n", u.ID)
		return nil
	})
}

type userPasswdCmd struct {
	storeFlags
	passwordFlag
	Username string `arg:""`
}

func (c *userPasswdCmd) Run(ctx context.Context) error {
	password, err := c.read()
	if err != nil {
		return err
	}
	return c.change(ctx, "user passwd", c.Username, "", func(s *stores) error {
		return about("user", c.Username, s.Accounts.SetPassword(ctx, c.Username, password))
	})
}

type userLogoutCmd struct {
	storeFlags
	Username string `arg:"" optional:""`
	All      bool   `help:"Replace the key that signs access tokens: all users must log in again."`
}

func (c *userLogoutCmd) Run(ctx context.Context) error {
	if c.All == (c.Username != "") {
		return &usageError{errors.New("user logout: expected a user or --all")}
	}
	if c.All {
		return c.change(ctx, "secret rotate", "", "", func(s *stores) error {
			if err := s.Accounts.RotateSigningKey(ctx); err != nil {
				return err
			}
			say("The token key has been replaced. Running servers reject old tokens within %s.\n", service.KeyInterval)
			return nil
		})
	}
	return c.change(ctx, "user logout", c.Username, "", func(s *stores) error {
		return about("user", c.Username, s.Accounts.EndSessions(ctx, c.Username))
	})
}

type userDeleteCmd struct {
	storeFlags
	Username string `arg:""`
}

func (c *userDeleteCmd) Run(ctx context.Context) error {
	return c.change(ctx, "user delete", c.Username, "", func(s *stores) error {
		return about("user", c.Username, s.Accounts.DeleteUser(ctx, c.Username))
	})
}
