package cli

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// DefaultServer is the server that is used if none is named.
const DefaultServer = "http://127.0.0.1:8080"

// Session is the state that all verbs share: the program's inputs and outputs, and the
// persistent flags.
type Session struct {
	*Program
	Server    string
	Namespace string
	// NamespaceGiven distinguishes -n default from no -n.
	NamespaceGiven bool
	RequestTimeout time.Duration // of one request; 0 for no limit
	Timeout        time.Duration // of the whole command; 0 for no limit

	// Access has the credentials from flags and the environment.
	Access contexts.Access

	context     string          // the name, "" for the current one
	credentials contexts.Access // for the server of the context
	// shown holds the warnings about files that were printed with their position.
	shown []string
}

// AddFlags adds the global flags to the root command.
func (s *Session) AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&s.Server, "server", DefaultServer, "URL or HOST:PORT of the pilot-api server; or set ISTIOCTL_SERVER")
	flags.StringVarP(&s.Namespace, "namespace", "n", schema.DefaultNamespace, "namespace of the objects")
	flags.StringVar(&s.context, "context", "", "context of the config file to use; see 'istioctl config'")
	flags.DurationVar(&s.RequestTimeout, "request-timeout", 30*time.Second, "give up on one request after this time; 0 waits for ever")
	flags.DurationVar(&s.Timeout, "timeout", 0, "give up on the whole command after this time; 0 waits for ever")
	flags.StringVar(&s.Access.Token, "token", "", "bearer token; other users of the machine may see it, unlike ISTIOCTL_TOKEN or --token-file")
	flags.StringVar(&s.Access.TokenFile, "token-file", "", "file with a bearer token, which is read again for each request; or set ISTIOCTL_TOKEN_FILE")
	flags.StringVar(&s.Access.CertificateAuthority, "certificate-authority", "", "file with the certificate authority of the server; or set ISTIOCTL_CERTIFICATE_AUTHORITY")
	flags.StringVar(&s.Access.ClientCertificate, "client-certificate", "", "file with the client certificate (with --client-key); or set ISTIOCTL_CLIENT_CERTIFICATE")
	flags.StringVar(&s.Access.ClientKey, "client-key", "", "file with the key of --client-certificate; or set ISTIOCTL_CLIENT_KEY")
	flags.StringVar(&s.Access.ServerName, "tls-server-name", "", "name in the server's certificate, if it is not the host of --server")
	// The flags exist, so this cannot fail.
	_ = root.RegisterFlagCompletionFunc("namespace", s.completeNamespaces)
	_ = root.RegisterFlagCompletionFunc("context", func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return s.CompleteContexts(cmd, nil, toComplete)
	})
}

// Begin completes the session before any verb runs.
func (s *Session) Begin(cmd *cobra.Command, args []string) error {
	if err := noneEmpty(cmd, args); err != nil {
		return err
	}
	if err := s.explicitAccess(); err != nil {
		return err
	}
	flags := cmd.Flags()
	s.NamespaceGiven = flags.Changed("namespace")
	if err := s.enter(flags.Changed("server")); err != nil {
		return err
	}
	if strings.TrimSpace(s.Server) == "" {
		return Usagef("--server is empty: is a variable not set?")
	}
	s.Server = ServerURL(s.Server)
	if err := s.CheckFlags(); err != nil {
		return err
	}
	cmd.SetContext(store.WithAuthor(cmd.Context(), s.author()))
	if s.Timeout > 0 {
		// The timer ends with the program, which ends with the command.
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), s.Timeout, fmt.Errorf("not done after --timeout %s", s.Timeout))
		context.AfterFunc(ctx, cancel)
		cmd.SetContext(ctx)
	}
	return nil
}

// explicitAccess completes the credentials of flags by those of the environment.
func (s *Session) explicitAccess() error {
	s.Access = s.Access.From(contexts.Flags).Or(contexts.Access{
		Token: s.Getenv("ISTIOCTL_TOKEN"), TokenFile: s.Getenv("ISTIOCTL_TOKEN_FILE"), CertificateAuthority: s.Getenv("ISTIOCTL_CERTIFICATE_AUTHORITY"),
		ClientCertificate: s.Getenv("ISTIOCTL_CLIENT_CERTIFICATE"), ClientKey: s.Getenv("ISTIOCTL_CLIENT_KEY"),
	}.From(contexts.Environment))
	if err := s.Access.Check(); err != nil {
		return Usage(err)
	}
	return nil
}

// ServerURL returns the URL for the value of --server.
func ServerURL(server string) string {
	if strings.Contains(server, "://") {
		return server
	}
	return "http://" + server
}

// author returns the author that the history records for writes of this command.
func (s *Session) author() store.Author {
	name := s.Getenv("ISTIOCTL_USER")
	if name == "" && s.User != nil {
		name = s.User()
	}
	return store.Author{User: Printable(name), UserAgent: "istioctl/" + s.Version}
}

// Printable returns a text that is safe in a header and in a table.
func Printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text))
}

// CheckFlags refuses values without a meaning. In particular, an empty namespace, for
// example from an unset variable, must never mean all namespaces.
func (s *Session) CheckFlags() error {
	if err := schema.CheckNamespace(s.Namespace); err != nil {
		return Usagef("--namespace: %w", err)
	}
	for name, limit := range map[string]time.Duration{"request-timeout": s.RequestTimeout, "timeout": s.Timeout} {
		if limit < 0 {
			return Usagef("--%s %s: must be 0 (no limit) or more", name, limit)
		}
	}
	return nil
}

// enter sets what no flag says from the environment and the context. A context named
// by a flag wins over the environment. The credentials of a context are used only for
// its own server.
func (s *Session) enter(serverGiven bool) error {
	env := s.Getenv("ISTIOCTL_SERVER")
	if env != "" && !serverGiven {
		s.Server = env
	}
	all, err := contexts.Read(s.Getenv)
	if err != nil {
		return err
	}
	name := s.context
	if name == "" {
		name = all.Current
	}
	if name == "" {
		return nil
	}
	chosen, err := all.Find(name)
	if err != nil {
		return Usage(err)
	}
	if chosen.Namespace != "" && !s.NamespaceGiven {
		s.Namespace = chosen.Namespace
	}
	if chosen.Server != "" && !serverGiven && (env == "" || s.context != "") {
		s.Server, s.credentials = chosen.Server, all.Credentials(chosen)
	}
	return nil
}
