package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
)

// Digest is a fingerprint of the records read so far, by which a load that goes
// on after a break tells whether the part already loaded is still the same. It
// is made of the data alone: the file's name, format and compression don't count.
type Digest struct {
	hash  hash.Hash
	count int64
}

// NewDigest returns the digest of no records.
func NewDigest() *Digest { return &Digest{hash: sha256.New()} }

// Add takes one record's data in.
func (d *Digest) Add(data json.RawMessage) {
	d.hash.Write(data) // a hash never returns an error
	d.hash.Write([]byte{'\n'})
	d.count++
}

// Count returns how many records were taken in.
func (d *Digest) Count() int64 { return d.count }

// Sum returns the fingerprint so far in hexadecimal; more records may follow.
func (d *Digest) Sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }
