package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/jackc/pgx/v5"
)

type place struct {
	Directory string // of the server's data; empty: hidden from this role
	Space     string // the directory of the table's tablespace, if it has one of its own
	Size      int64  // of the database
	MostWAL   int64
}

const placeSQL = `
SELECT
	coalesce((SELECT setting FROM pg_settings WHERE name = 'data_directory'), '') AS directory,
	coalesce((SELECT pg_tablespace_location(c.reltablespace) FROM pg_class AS c WHERE c.oid = CAST(@table AS oid)), '') AS space,
	CASE WHEN has_database_privilege(current_database(), 'CONNECT') THEN pg_database_size(current_database()) ELSE 0 END AS size,
	pg_size_bytes(current_setting('max_wal_size')) AS most_wal`

// lookAtServersDisk asks the file system if the server is on this machine: the
// server itself does not tell.
func lookAtServersDisk(ctx context.Context, p *patient) ([]Finding, error) {
	where, err := askOne[place](ctx, p, placeSQL, p.about())
	if err != nil {
		return nil, err
	}
	cure := "SHOW data_directory;  -- as a superuser; then df -h on the server"
	if where.Directory != "" {
		cure = "df -h " + shellQuoted(where.Directory) + "  # on the server"
	}
	if !isHere(p) || where.Directory == "" || !isFolder(where.Directory) {
		return []Finding{{Severity: Note, What: fmt.Sprintf("the server's free space can't be seen from here; the database has %s", size(where.Size)),
			Why:  fmt.Sprintf("a full disk stops the server. While rows are worked the table grows to about three times its rows, and the WAL up to %s and more", size(where.MostWAL)),
			Cure: cure}}, nil
	}
	folders := []string{where.Directory, where.Directory + "/pg_wal"}
	if where.Space != "" {
		folders = append(folders, where.Space)
	}
	var findings []Finding
	text := ""
	for _, folder := range folders {
		free, total, err := freeSpace(folder)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, errNoStatfs):
			continue
		case err != nil:
			return nil, err
		}
		if text == "" {
			text = fmt.Sprintf("%s of %s on %s; the database has %s", size(free), size(total), folder, size(where.Size))
		}
		if severity := tightness(free, total, where.MostWAL+1<<30); severity != OK {
			findings = append(findings, Finding{Severity: severity, What: fmt.Sprintf("only %s of %s are free on %s", size(free), size(total), folder),
				Why:  fmt.Sprintf("a full disk stops the server. The WAL alone may grow to %s and more, and the table grows while rows are worked", size(where.MostWAL)),
				Cure: fmt.Sprintf("df -h %s  # then make room, or move it to a larger disk", shellQuoted(folder))})
			break
		}
	}
	return orFine(findings, text), nil
}

// isHere tells whether the server is on this machine, as far as its own address
// tells: a forwarded port leads to one that is not that of this machine.
func isHere(p *patient) bool {
	if p.pooled {
		return false
	}
	if p.session.Host != "" {
		ip := net.ParseIP(p.session.Host)
		return ip != nil && ip.IsLoopback()
	}
	config, err := pgx.ParseConfig(p.address)
	return err == nil && len(config.Host) > 0 && config.Host[0] == '/'
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// tightness judges free space: a fiftieth, or less than is needed soon, is little.
func tightness(free, total, soon int64) Severity {
	switch {
	case free < 256<<20:
		return Error
	case free < total/50, free < soon:
		return Warning
	default:
		return OK
	}
}
