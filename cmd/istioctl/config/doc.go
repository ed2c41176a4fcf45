// Package config has the verb config, which shows and changes contexts. It reads and
// writes the config file, and asks no server.
package config
