package database_test

import (
	"testing"

	"github.com/windrow-go/windrow/internal/database"
)

func TestNetworkFileSystemsAreKnown(t *testing.T) {
	t.Parallel()
	for magic, want := range map[int64]string{
		0x6969: "NFS", 0xff534d42: "SMB", 0xff534d42 - 1<<32: "SMB", 0xfe534d42: "SMB", 0x517b: "SMB",
		0x01021997: "9p", 0x00c36400: "Ceph", 0x5346414f: "AFS",
		0xef53: "", 0x01021994: "", 0x65735546: "", // ext4, tmpfs, FUSE
	} {
		if got := database.NetworkName(magic); got != want {
			t.Errorf("%#x: got %q, want %q", magic, got, want)
		}
	}
}
