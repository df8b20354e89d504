package pgcluster

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is whom the server's programs run as; the zero value is this process's
// own user.
type account struct {
	credential *syscall.Credential
}

// serverAccount is this process's user, unless that is root, whom PostgreSQL
// refuses; then it is postgres, or nobody where the package's user is missing.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	var missing []error
	for _, name := range []string{"postgres", "nobody"} {
		found, err := lookUp(name)
		if err == nil {
			return found, nil
		}
		missing = append(missing, err)
	}
	return account{}, fmt.Errorf("choose a user other than root for the server: %w", errors.Join(missing...))
}

func lookUp(name string) (account, error) {
	entry, err := user.Lookup(name)
	if err != nil {
		return account{}, err
	}
	uid, err := strconv.ParseUint(entry.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: uid: %w", name, err)
	}
	gid, err := strconv.ParseUint(entry.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: gid: %w", name, err)
	}
	return account{credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// own makes the paths the account's.
func (a account) own(paths ...string) error {
	if a.credential == nil {
		return nil
	}
	for _, path := range paths {
		if err := os.Chown(path, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
			return err
		}
	}
	return nil
}
