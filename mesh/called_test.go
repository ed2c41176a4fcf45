package mesh_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestCalledHosts(t *testing.T) {
	for name, want := range map[string]string{
		"80/shop.example.com":                    "shop.example.com",
		"80/Shop.Example.COM:8080":               "shop.example.com",
		"80/10.0.0.1:80":                         "10.0.0.1",
		"80/[::1]":                               "[::1]",
		"80/[::1]:80":                            "[::1]",
		"80/shop:x":                              "shop:x",
		"80":                                     "",
		"80/":                                    "",
		"80/*":                                   "",
		"80/*.example.com":                       "",
		"80/a/b":                                 "",
		"80/a b":                                 "",
		"80/~":                                   "",
		"http_proxy/shop.example.com":            "",
		"70000/shop.example.com":                 "",
		"80/" + string(make([]byte, 10)):         "",
		"80/" + fmt.Sprintf("%0300d.example", 1): "",
	} {
		got := mesh.NewCalled([]string{name}).At(80)
		if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
			t.Errorf("%.40q calls %q, want %q", name, got, want)
		}
	}
}

func TestSpellingsOfACalledHostAreOne(t *testing.T) {
	once := mesh.NewCalled([]string{"80/a", "443/a"})
	again := mesh.NewCalled([]string{"443/a", "80/A:80", "80/a", "80/*"})
	if !once.Equal(again) || (mesh.Traits{Called: once}).Key() != (mesh.Traits{Called: again}).Key() {
		t.Error("other spellings are other hosts")
	}
	for _, other := range []*mesh.Called{nil, mesh.NewCalled(nil), mesh.NewCalled([]string{"80/a"}), mesh.CallsEverything()} {
		if once.Equal(other) || (mesh.Traits{Called: once}).Key() == (mesh.Traits{Called: other}).Key() {
			t.Errorf("%v is the same as %v", other, once)
		}
	}
}

func TestWhoCallsVeryManyHostsCallsEverything(t *testing.T) {
	var names []string
	for i := range mesh.MaxCalled {
		names = append(names, fmt.Sprintf("80/h%d", i), fmt.Sprintf("80/h%d:80", i))
	}
	if called := mesh.NewCalled(names); called.Everything() || len(called.At(80)) != mesh.MaxCalled {
		t.Error("as many hosts as allowed are too many")
	}
	if !mesh.NewCalled(append(names, "80/one-more")).Everything() {
		t.Error("one more host than allowed is one more host")
	}
}
