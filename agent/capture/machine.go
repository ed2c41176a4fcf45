package capture

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// Machine finds what names in flags stand for.
type Machine struct {
	// User returns the numbers of a user and of the user's own group.
	User func(name string) (uid, gid uint32, err error)
	// Group returns the number of a group.
	Group func(name string) (uint32, error)
	// Resolvers returns the servers that programs of this machine ask.
	Resolvers func() ([]netip.Addr, error)
	// Addresses returns the addresses of a host, which may be an address itself.
	Addresses func(host string) ([]netip.Addr, error)
}

// resolverFile names the servers that programs of a machine ask.
const resolverFile = "/etc/resolv.conf"

// lookupTime is how long a machine looks for the addresses of a host.
const lookupTime = 10 * time.Second

// ThisMachine returns the machine on which the program runs.
func ThisMachine(ctx context.Context) Machine {
	return Machine{
		User:  lookupUser,
		Group: lookupGroup,
		Resolvers: func() ([]netip.Addr, error) {
			text, err := os.ReadFile(resolverFile)
			return resolvers(string(text)), err
		},
		Addresses: func(host string) ([]netip.Addr, error) {
			if address, err := netip.ParseAddr(host); err == nil {
				return []netip.Addr{address}, nil
			}
			ctx, cancel := context.WithTimeout(ctx, lookupTime)
			defer cancel()
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}
}

func lookupUser(name string) (uid, gid uint32, err error) {
	found, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("this machine has no user %q; a number works too", name)
	}
	u, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	g, err := strconv.ParseUint(found.Gid, 10, 32)
	return uint32(u), uint32(g), err
}

func lookupGroup(name string) (uint32, error) {
	found, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("this machine has no group %q; a number works too", name)
	}
	n, err := strconv.ParseUint(found.Gid, 10, 32)
	return uint32(n), err
}

// resolvers returns the servers in the text of a resolv.conf.
func resolvers(text string) (out []netip.Addr) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if address, err := netip.ParseAddr(words[1]); err == nil {
			out = append(out, address.Unmap().WithZone(""))
		}
	}
	return out
}

func splitHostPort(text string) (host string, port uint16, err error) {
	host, number, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return "", 0, fmt.Errorf("%q has not the form HOST:PORT", text)
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%q has no port: a number from 1 to 65535 is needed", text)
	}
	return host, uint16(n), nil
}
