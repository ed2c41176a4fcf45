package login

import (
	"os/exec"
	"runtime"
)

// browser returns the command that opens a page in a browser, nil if there is none: that of
// BROWSER, or that of the desktop.
func browser(getenv func(string) string) []string {
	switch {
	case getenv("BROWSER") != "":
		return []string{getenv("BROWSER")}
	case runtime.GOOS == "darwin":
		return []string{"open"}
	case runtime.GOOS == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		return []string{"xdg-open"}
	}
	return nil
}

// start starts a command that may outlive this one, as a browser does.
func start(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
