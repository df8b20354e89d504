package database

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// networkFileSystems are those whose locks and shared memory SQLite can't rely on,
// by the magic number that statfs tells. FUSE is not among them: most of it is local.
var networkFileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC:  "NFS",
	unix.SMB_SUPER_MAGIC:  "SMB",
	0xff534d42:            "SMB", // CIFS
	unix.SMB2_SUPER_MAGIC: "SMB",
	unix.V9FS_MAGIC:       "9p",
	unix.AFS_SUPER_MAGIC:  "AFS",
	unix.AFS_FS_MAGIC:     "AFS",
	0x00c36400:            "Ceph",
}

// checkFileSystem refuses a folder on a network file system. One that can't be asked
// passes: opening the file will tell.
func checkFileSystem(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return nil
	}
	if name := networkName(int64(stat.Type)); name != "" {
		return fmt.Errorf("%s is on a network file system (%s), where an SQLite file isn't safe: put it on a local disk with --database", dir, name)
	}
	return nil
}

// networkName names the network file system of that magic number; a system whose
// words have 32 bits gives it a sign.
func networkName(magic int64) string { return networkFileSystems[magic&0xffffffff] }
