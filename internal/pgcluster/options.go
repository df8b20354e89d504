package pgcluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Options say what a cluster is like. The zero value is a server fit for tests.
type Options struct {
	// Programs is the folder of initdb and postgres; empty: found by [Programs].
	Programs string
	// Dir is where the cluster's own folder is made; empty: the system's folder
	// for temporary files. The user postgres must be able to enter it when this
	// process runs as root.
	Dir string
	// Fsync makes the server write through to the disk, as a real one does. Off
	// by default: a killed server loses nothing by that, a killed machine would.
	Fsync bool
	// Settings are lines of postgresql.conf, values unquoted; they come last
	// and so override the cluster's own (max_connections 200, shared_buffers
	// 64MB, fsync and full_page_writes by Fsync). ALTER SYSTEM overrides them.
	Settings map[string]string
}

// settings returns everything that is added to postgresql.conf.
func (o Options) settings(folder string) map[string]string {
	all := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": socketFolder(folder),
		"max_connections":         "200",
		"shared_buffers":          "64MB",
		"log_line_prefix":         "%m [%p] %q%u@%d ",
	}
	if !o.Fsync {
		all["fsync"] = "off"
		all["full_page_writes"] = "off"
	}
	maps.Copy(all, o.Settings)
	return all
}

// longestSocketFolder leaves room for "/.s.PGSQL.12345.lock" in the 104 bytes
// that the shortest of the systems' limits grants to a socket's path.
const longestSocketFolder = 80

// socketFolder is empty, and so turns the socket off, where the temporary folder
// is too deep for one; everything here speaks TCP anyway.
func socketFolder(folder string) string {
	socket := filepath.Join(folder, "socket")
	if len(socket) > longestSocketFolder {
		return ""
	}
	return socket
}

// writeSettings appends the settings to the file that initdb wrote.
func writeSettings(path string, settings map[string]string) (err error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		quoted := strings.ReplaceAll(settings[name], "'", "''")
		if _, err := fmt.Fprintf(file, "%s = '%s'\n", name, quoted); err != nil {
			return err
		}
	}
	return nil
}
