package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// Pilot is a running pilot-api.
type Pilot struct {
	*testbed.Server
	programs Programs
}

// StartPilot runs a pilot-api on a free loopback port and returns when it is ready. Its
// log is in dir. args must say where its data is.
func StartPilot(ctx context.Context, programs Programs, dir string, args ...string) (*Pilot, error) {
	server, err := testbed.NewServer(dir, "pilot-api", programs.PilotAPI, args...)
	if err != nil {
		return nil, err
	}
	p := &Pilot{server, programs}
	return p, p.Restart(ctx)
}

// Restart starts the program again with the same arguments, after Stop or Kill, and
// returns when it is ready.
func (p *Pilot) Restart(ctx context.Context) error {
	if err := p.Start(); err != nil {
		return err
	}
	if err := p.ready(ctx); err != nil {
		return errors.Join(err, p.Stop())
	}
	return nil
}

func (p *Pilot) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Ready(ctx)
}

// Istioctl runs the command line against this server and returns its output. The error of
// a failed command includes the output.
func (p *Pilot) Istioctl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.programs.Istioctl, append(args, "--server", p.URL)...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("istioctl %s: %w\n%s%s", strings.Join(args, " "), err, &out, &complaints)
	}
	return out.Bytes(), nil
}

// Published returns when discovery answers include everything that has been written up to
// now.
func (p *Pilot) Published(ctx context.Context) error {
	written, err := p.writtenRevision(ctx)
	if err != nil {
		return err
	}
	return until(ctx, fmt.Sprintf("discovery to publish revision %d", written), p.Process, func(ctx context.Context) error {
		published, err := p.publishedRevision(ctx)
		if err == nil && published < written {
			err = fmt.Errorf("published is %d", published)
		}
		return err
	})
}

// writtenRevision returns the revision of the last write. Lists are linearizable and etcd has
// one revision for all kinds, so the revision of any list will do.
func (p *Pilot) writtenRevision(ctx context.Context) (int64, error) {
	text, err := fetch(ctx, p.URL+"/apis/config.istio.io/v1alpha2/routerules")
	if err != nil {
		return 0, err
	}
	var list struct {
		Metadata struct {
			Revision int64 `json:"resourceVersion,string"`
		}
	}
	err = json.Unmarshal(text, &list)
	return list.Metadata.Revision, err
}

var revisionMetric = regexp.MustCompile(`(?m)^pilot_discovery_revision (\S+)$`)

func (p *Pilot) publishedRevision(ctx context.Context) (int64, error) {
	text, err := fetch(ctx, p.URL+"/metrics")
	if err != nil {
		return 0, err
	}
	found := revisionMetric.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("no line %s in /metrics", revisionMetric)
	}
	revision, err := strconv.ParseFloat(string(found[1]), 64)
	return int64(revision), err
}

// fetch returns the body of a GET that was answered with 200.
func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return send(req)
}

// send returns the body of a request that was answered with 200.
func send(req *http.Request) ([]byte, error) { return sendOver(http.DefaultClient, req) }

func sendOver(client *http.Client, req *http.Request) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s\n%s", req.Method, req.URL, resp.Status, body)
	}
	return body, err
}
