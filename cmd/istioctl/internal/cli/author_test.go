package cli

import "testing"

func TestAuthor(t *testing.T) {
	for _, test := range []struct{ env, system, want string }{
		{"", "ada", "ada"},
		{"ci-job-7", "root", "ci-job-7"},
		{"", "", ""},
		{"two\r\nlines\x00", "", "twolines"},
	} {
		s := &Session{Program: &Program{
			Getenv:  func(name string) string { return map[string]string{"ISTIOCTL_USER": test.env}[name] },
			Version: "1.2.3",
			User:    func() string { return test.system },
		}}
		if got := s.author(); got.User != test.want || got.UserAgent != "istioctl/1.2.3" {
			t.Errorf("ISTIOCTL_USER %q, user %q: author is %+v", test.env, test.system, got)
		}
	}
}
