package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// TestMigrate: from the data folder of a server into a cluster of three, and a
// server over that.
func TestMigrate(t *testing.T) {
	outside.Slow(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := testbed.StartEtcd(ctx, t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	var endpoints []string
	for _, m := range cluster.Members {
		endpoints = append(endpoints, m.URL())
	}
	to := strings.Join(endpoints, ",")

	data := t.TempDir()
	p := startProgram(t, data)
	for _, name := range []string{"a", "b"} {
		if !p.post(name, 10) {
			t.Fatal("not created")
		}
	}
	if text := command(t, exitFailed, "migrate", "--from", data, "--to-endpoints", to); !strings.Contains(text, "in use") {
		t.Errorf("from a running server: %s", text)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if text := command(t, exitFailed, "migrate", "--from", data, "--to-endpoints", to, "--etcd-prefix", "/other"); !strings.Contains(text, `have "/pilot-api"`) {
		t.Errorf("of a prefix that has nothing: %s", text)
	}
	if text := command(t, exitDone, "migrate", "--from", data, "--to-endpoints", to); !strings.Contains(text, "2 objects") {
		t.Error(text)
	}
	if text := command(t, exitFailed, "migrate", "--from", data, "--to-endpoints", to); !strings.Contains(text, "not empty") {
		t.Errorf("once more: %s", text)
	}
	next := startProgram(t, t.TempDir(), "--etcd-endpoints", to)
	for _, name := range []string{"a", "b"} {
		if code, _ := next.answer(t, rulesPath+"/"+name); code != http.StatusOK {
			t.Errorf("%s: %d", name, code)
		}
		if _, text := next.answer(t, rulesPath+"/"+name+"/history"); !strings.Contains(text, `"create"`) {
			t.Errorf("history of %s: %s", name, text)
		}
	}
	if !next.post("c", 10) {
		t.Error("the new server takes no object")
	}
}

// TestMigrateToNobody: a target that does not answer is told soon, and by its flag.
func TestMigrateToNobody(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // It accepts and says nothing.
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	target := "http://" + silent.Addr().String()
	if said := command(t, exitFailed, "migrate", "--from", t.TempDir(), "--to-endpoints", target); !strings.Contains(said, "--to-endpoints "+target+": etcd does not answer within 10s") {
		t.Error(said)
	}
}

func TestMigrateUsage(t *testing.T) {
	for _, args := range [][]string{
		{"migrate"},
		{"migrate", "--from", "x"},
		{"migrate", "--from", "x", "--to-endpoints", "here"},
		{"migrate", "x"},
	} {
		command(t, exitUsage, args...)
	}
}
