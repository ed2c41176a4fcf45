package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/pilot-api/pilot-api/internal/outside"
)

const (
	servicesPath = "/apis/networking.istio.io/v1/namespaces/default/serviceentries"
	hostOfShop   = "shop.example.com"
)

func serviceEntry(name, host string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":%q,"namespace":"default"},`+
		`"spec":{"hosts":[%q],"location":"MESH_EXTERNAL","resolution":"DNS","ports":[{"number":80,"name":"http","protocol":"HTTP"}]}}`, name, host)
}

// corrupt changes a text in all stored states of an object, as a failing disk
// would: the length and everything else stay.
func corrupt(t *testing.T, data, key, old, new string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(data, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	err = db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		return bucket.ForEach(func(k, v []byte) error {
			if !bytes.Contains(v, []byte("/objects/"+key)) || !bytes.Contains(v, []byte(old)) {
				return nil
			}
			changed++
			return bucket.Put(bytes.Clone(k), bytes.Replace(v, []byte(old), []byte(new), 1))
		})
	})
	if err := errorsOf(err, db.Close()); err != nil || changed == 0 || len(old) != len(new) {
		t.Fatalf("%d values of %s changed, %v", changed, key, err)
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestDamagedValues: a value whose bits were flipped on the disk is served by no
// reader and followed by no proxy, everybody is told, and it can be mended.
func TestDamagedValues(t *testing.T) {
	outside.Slow(t)
	for name, damage := range map[string]struct{ old, new string }{
		"another host":        {hostOfShop, "shop.exbmple.com"},
		"no UTF-8":            {hostOfShop, "shop.ex\xe1mple.com"},
		"no JSON":             {`"spec":{`, `"spec":[`},
		"spec under no name":  {`"spec":{`, `"spdc":{`},
		"the checksum itself": {`,"crc32c":"`, `,"crc32b":"`},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			p := startProgram(t, data)
			for _, one := range []string{serviceEntry("shop", hostOfShop), serviceEntry("good", "good.example.com")} {
				if resp, text := p.ask(t, http.MethodPost, servicesPath, one); resp.StatusCode != http.StatusCreated {
					t.Fatal(resp.Status, text)
				}
			}
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			corrupt(t, data, "networking.istio.io/serviceentries/default/shop", damage.old, damage.new)
			p = startProgram(t, data)
			p.isWithheld(t)
			p.isMended(t)
		})
	}
}

func (p *program) isWithheld(t *testing.T) {
	t.Helper()
	resp, text := p.ask(t, http.MethodGet, servicesPath+"/shop", "")
	if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(text, "StorageReadError") || !strings.Contains(text, "the stored value cannot be read") {
		t.Errorf("get: %s %s", resp.Status, text)
	}
	for range 3 { // The third one is a list that is kept.
		resp, text = p.ask(t, http.MethodGet, servicesPath, "")
		if resp.StatusCode != http.StatusOK || strings.Contains(text, `"shop"`) || !strings.Contains(text, `"good"`) {
			t.Errorf("list: %s %s", resp.Status, text)
		}
		if w := strings.Join(resp.Header.Values("Warning"), " "); !strings.Contains(w, "ServiceEntry default/shop") || !strings.Contains(w, "left out") {
			t.Errorf("list without a warning of what it lacks: %s", w)
		}
	}
	resp, text = p.ask(t, http.MethodGet, servicesPath+"?watch=true&timeoutSeconds=1", "")
	if strings.Contains(text, `"shop"`) || !strings.Contains(text, `"good"`) || resp.Header.Get("Warning") == "" {
		t.Errorf("watch: %s %v", text, resp.Header)
	}
	if resp, text = p.ask(t, http.MethodPut, servicesPath+"/shop", strings.Replace(serviceEntry("shop", hostOfShop), `"name"`, `"resourceVersion":"1","name"`, 1)); resp.StatusCode != http.StatusConflict {
		t.Errorf("update of another version: %s %s", resp.Status, text)
	}
	_, text = p.ask(t, http.MethodGet, "/debug/problems", "")
	if !strings.Contains(text, `"shop"`) || !strings.Contains(text, "cannot be read") {
		t.Errorf("problems: %s", text)
	}
	if _, text = p.ask(t, http.MethodGet, "/metrics", ""); !strings.Contains(text, "pilot_store_unreadable_values 1\n") || !strings.Contains(text, "pilot_discovery_problems 1\n") {
		t.Error("the metrics do not count it")
	}
	_, text = p.ask(t, http.MethodPost, "/v3/discovery:clusters", `{"node":{"id":"sidecar~10.0.0.9~web.default~default.svc.cluster.local"}}`)
	if strings.Contains(text, "shop.") || !strings.Contains(text, "good.example.com") {
		t.Errorf("clusters: %s", text)
	}
}

// isMended deletes it and makes it anew.
func (p *program) isMended(t *testing.T) {
	t.Helper()
	resp, text := p.ask(t, http.MethodPost, "/apis/registry.istio.io/v1/transactions",
		`{"spec":{"operations":[{"verb":"patch","target":{"kind":"ServiceEntry","namespace":"default","name":"shop"},"patch":{"metadata":{"labels":{"a":"b"}}}}]}}`)
	if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(text, "StorageReadError") {
		t.Errorf("patch in a transaction: %s %s", resp.Status, text)
	}
	if resp, text = p.ask(t, http.MethodPut, servicesPath+"/shop", serviceEntry("shop", hostOfShop)); resp.StatusCode != http.StatusOK {
		t.Errorf("put: %s %s", resp.Status, text)
	}
	if resp, text = p.ask(t, http.MethodGet, servicesPath+"/shop", ""); resp.StatusCode != http.StatusOK || !strings.Contains(text, hostOfShop) {
		t.Errorf("get of the new one: %s %s", resp.Status, text)
	}
	if resp, _ = p.ask(t, http.MethodGet, servicesPath, ""); resp.Header.Get("Warning") != "" {
		t.Errorf("list of good objects: %s", resp.Header.Get("Warning"))
	}
	if _, text = p.ask(t, http.MethodGet, "/debug/problems", ""); strings.Contains(text, "cannot be read") {
		t.Errorf("problems: %s", text)
	}
}

// TestDamagedValueIsDeleted by a plain delete, and its history brings it back.
func TestDamagedValueIsDeleted(t *testing.T) {
	data := t.TempDir()
	p := startProgram(t, data)
	p.ask(t, http.MethodPost, servicesPath, serviceEntry("shop", hostOfShop))
	resp, text := p.ask(t, http.MethodPatch, servicesPath+"/shop", `{"metadata":{"labels":{"a":"b"}}}`)
	if resp.StatusCode != http.StatusUnsupportedMediaType { // The type of a patch is another.
		t.Fatal(resp.Status, text)
	}
	p.ask(t, http.MethodPut, servicesPath+"/shop", serviceEntry("shop", "other.example.com"))
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	corrupt(t, data, "networking.istio.io/serviceentries/default/shop", "other.example", "othes.example")
	p = startProgram(t, data)
	resp, text = p.ask(t, http.MethodGet, servicesPath+"/shop/history", "")
	if resp.StatusCode != http.StatusOK || !strings.Contains(text, hostOfShop) || strings.Contains(text, "othes") {
		t.Errorf("history: %s %s", resp.Status, text)
	}
	if resp, text = p.ask(t, http.MethodDelete, servicesPath+"/shop", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("delete: %s %s", resp.Status, text)
	}
	if resp, text = p.ask(t, http.MethodGet, servicesPath+"/shop", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("get: %s %s", resp.Status, text)
	}
}

// TestDamagedValueIsRolledBack: an earlier state takes the place of a damaged value.
func TestDamagedValueIsRolledBack(t *testing.T) {
	data := t.TempDir()
	p := startProgram(t, data)
	resp, text := p.ask(t, http.MethodPost, servicesPath, serviceEntry("shop", "first.example.com"))
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status, text)
	}
	var made struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	if resp, text := p.ask(t, http.MethodPut, servicesPath+"/shop", serviceEntry("shop", hostOfShop)); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, text)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	corrupt(t, data, "networking.istio.io/serviceentries/default/shop", hostOfShop, "shop.exbmple.com")
	p = startProgram(t, data)
	revision := made.Metadata.ResourceVersion
	if _, text := p.ask(t, http.MethodGet, "/apis/registry.istio.io/v1/changes?namespace=default&since="+revision, ""); !strings.Contains(text, `"unreadable":{"revision":`) {
		t.Errorf("the changes: %s", text)
	}
	if resp, text := p.ask(t, http.MethodPost, "/apis/registry.istio.io/v1/rollbacks", `{"spec":{"namespace":"default","revision":"`+revision+`"}}`); resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status, text)
	}
	if resp, text := p.ask(t, http.MethodGet, servicesPath+"/shop", ""); resp.StatusCode != http.StatusOK || !strings.Contains(text, "first.example.com") {
		t.Error(resp.Status, text)
	}
}

// TestDamagedValueOfThatRevision: the value that was stored at the revision cannot be
// read, so nobody knows what the object was. It is reported, and not passed over; the
// others are rolled back where that is no matter of all or nothing.
func TestDamagedValueOfThatRevision(t *testing.T) {
	data := t.TempDir()
	p := startProgram(t, data)
	p.ask(t, http.MethodPost, servicesPath, serviceEntry("shop", hostOfShop))
	_, text := p.ask(t, http.MethodPost, servicesPath, serviceEntry("good", "good.example.com"))
	var made struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	p.ask(t, http.MethodPut, servicesPath+"/good", serviceEntry("good", "changed.example.com"))
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	corrupt(t, data, "networking.istio.io/serviceentries/default/shop", hostOfShop, "shop.exbmple.com")
	p = startProgram(t, data)
	revision := made.Metadata.ResourceVersion
	for _, query := range []string{"", "&limit=1"} {
		_, text := p.ask(t, http.MethodGet, "/apis/registry.istio.io/v1/changes?namespace=default&since="+revision+query, "")
		if strings.Count(text, `"lost":true`) != 1 || strings.Count(text, `"name":"shop"`) != 1 || !strings.Contains(text, "changed.example.com") {
			t.Errorf("the changes: %s", text)
		}
	}
	for _, what := range []string{"", `,"kind":"ServiceEntry","name":"shop"`} {
		resp, text := p.ask(t, http.MethodPost, "/apis/registry.istio.io/v1/rollbacks", `{"spec":{"namespace":"default","revision":`+revision+what+`}}`)
		if resp.StatusCode != http.StatusGone || !strings.Contains(text, `\"shop\"`) || !strings.Contains(text, "what the object was then is not known") {
			t.Errorf("a rollback of all%s: %s %s", what, resp.Status, text)
		}
	}
	if _, text := p.ask(t, http.MethodGet, servicesPath+"/good", ""); !strings.Contains(text, "changed.example.com") {
		t.Errorf("half a rollback: %s", text)
	}
	resp, text := p.ask(t, http.MethodPost, "/apis/registry.istio.io/v1/rollbacks", `{"spec":{"namespace":"default","steps":true,"revision":`+revision+`}}`)
	if resp.StatusCode != http.StatusCreated || !strings.Contains(text, `"undone":[{"kind":"ServiceEntry","namespace":"default","name":"shop","reason":"Expired"`) {
		t.Errorf("a rollback in steps: %s %s", resp.Status, text)
	}
	if _, text := p.ask(t, http.MethodGet, servicesPath+"/good", ""); !strings.Contains(text, "good.example.com") {
		t.Errorf("the other one is not rolled back: %s", text)
	}
	p.isMended(t)
	if resp, text := p.ask(t, http.MethodPost, "/apis/registry.istio.io/v1/rollbacks", `{"spec":{"namespace":"default","revision":`+revision+`}}`); resp.StatusCode != http.StatusGone {
		t.Errorf("the mended one has no state of that time: %s %s", resp.Status, text)
	}
}
