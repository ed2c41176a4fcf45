package proxy

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/explain"
)

// RouteOptions are the values of the flags of route, with the request to explain.
type RouteOptions struct {
	proxyFlags
	from    string
	method  string
	headers []string
	all     bool
	output  string
}

// NewRouteCommand returns the command route.
func NewRouteCommand(s *cli.Session) *cobra.Command {
	f := RouteOptions{proxyFlags: proxyFlags{Connect: connectTo(s)}}
	cmd := &cobra.Command{
		Use:   "route --from PROXY (URL | --all)",
		Short: "Explain how a proxy handles a request",
		Long: `Explain how one proxy handles a request: the listener, the virtual host and the route
that take it; the earlier rules that do not match, with the condition that fails; and
the result: rewrites, faults, timeout, retries, and the clusters with their endpoints.
--all shows all routes of the proxy instead, in the order in which they are tried.

For a sidecar, the request comes from the workload beside it. For a gateway, it comes
from a client that calls the gateway at the port of the URL. PROXY is a node ID,
role~ip~id~domain, or a part of the ID of one proxy that the server knows. For any
other proxy, give the whole ID.

With -f, istioctl asks no server. It compiles the objects of the files, which are all
objects that it knows. It then does not know what an Envoy refuses; 'istioctl problems'
shows that. If no route takes the request, that is not a failure: the exit code is 0.`,
		Example: `  # Which version of reviews does jason get?
  istioctl route --from productpage -H 'end-user: jason' http://reviews:9080/reviews/1

  # The same for the files of a folder, before anything is stored
  istioctl route -f rules/ --from sidecar~10.1.0.1~productpage.default~default.svc.cluster.local http://reviews:9080/

  # How does the gateway handle this request?
  istioctl route --from router~10.0.0.9~edge.default~default.svc.cluster.local https://shop.example.com/cart

  # All routes of a proxy
  istioctl route --from productpage --all`,
		Args:              cli.AtMostOneArg,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd, args); err != nil {
			return err
		}
		return f.Run(cmd.Context(), s, args)
	}
	f.add(cmd)
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("from", completeNodes(s))
	return cmd
}

func (f *RouteOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "proxy that gets the request: a node ID, or a part of the ID of one known proxy")
	flags.StringVar(&f.method, "method", http.MethodGet, "method of the request")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "header of the request, 'name: value'; may be repeated")
	flags.BoolVar(&f.all, "all", false, "show all routes of the proxy")
	f.proxyFlags.add(cmd)
	printer.AddFlag(cmd, &f.output, printer.DocumentFormats)
}

func (f *RouteOptions) check(cmd *cobra.Command, args []string) error {
	switch {
	case f.from == "":
		return cli.Usagef("say which proxy gets the request: --from PROXY")
	case f.all && len(args) > 0:
		return cli.Usagef("--all shows all routes: leave out either it or the URL")
	case !f.all && len(args) != 1:
		return cli.Usagef("say which request: istioctl route --from PROXY http://reviews:9080/path, or --all")
	}
	for _, name := range []string{"method", "header"} {
		if f.all && cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is of a request, and --all shows all routes", name)
		}
	}
	if err := printer.Check(f.output, printer.DocumentFormats); err != nil {
		return err
	}
	return f.proxyFlags.Check(cmd)
}

// request returns the request to explain.
func (f *RouteOptions) request(target string) (explain.Request, error) {
	headers, err := explain.ParseHeaders(f.headers)
	if err != nil {
		return explain.Request{}, cli.Usage(err)
	}
	r, err := explain.NewRequest(f.method, target, headers)
	if err != nil {
		return r, cli.Usage(err)
	}
	return r, nil
}

// Run explains the request to the URL in args, or shows all routes.
func (f *RouteOptions) Run(ctx context.Context, s *cli.Session, args []string) error {
	if f.all {
		return f.showAll(ctx, s)
	}
	e, err := f.explain(ctx, s, args[0])
	if err != nil {
		return err
	}
	if !printer.IsTable(f.output) {
		return printer.WriteDocument(s.Stdout, f.output, e)
	}
	return e.Write(s.Stdout)
}

// explain asks the server, or evaluates the files if there are any.
func (f *RouteOptions) explain(ctx context.Context, s *cli.Session, target string) (*explain.Explanation, error) {
	r, err := f.request(target)
	if err != nil {
		return nil, err
	}
	if f.Offline() {
		p, err := f.compile(ctx, s, f.from)
		if err != nil {
			return nil, err
		}
		return p.Ask(r), nil
	}
	c, err := f.Connect(s.Warn)
	if err != nil {
		return nil, err
	}
	of, err := f.resolveProxy(ctx, c, f.from)
	if err != nil {
		return nil, s.Fail(ctx, err)
	}
	e, err := c.Explain(ctx, of, f.method, target, f.headers)
	if err != nil {
		return nil, s.Fail(ctx, err)
	}
	warnRefusing(ctx, s, c, of.Node)
	return e, nil
}

func (f *RouteOptions) showAll(ctx context.Context, s *cli.Session) error {
	summary, err := f.summary(ctx, s, f.from, "routes")
	if err != nil {
		return err
	}
	if !printer.IsTable(f.output) {
		return printer.WriteDocument(s.Stdout, f.output, summary.Routes)
	}
	return showRoutes(s, summary.Routes)
}

// originsText lists the objects that a part came from.
func originsText(origins []diag.Ref) string {
	texts := make([]string, len(origins))
	for i, o := range origins {
		texts[i] = o.String()
	}
	return strings.Join(texts, ", ")
}
