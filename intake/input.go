package intake

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// inputFile is a file to be read.
type inputFile struct {
	name    string // as shown in messages
	stdin   bool
	regular bool
	size    int64 // bytes; 0 if not a regular file
}

// input is a file that is open: its content, decompressed.
type input struct {
	*bufio.Reader
	file       *os.File // nil for stdin
	counter    *counter
	compressed bool
	closers    []func() error
}

// readBuffer is the size of the buffers between a file and its decoder.
const readBuffer = 256 << 10

// open opens the file and finds the decoder for what is in it.
func (s *Source) open(file inputFile) (decoder, error) {
	in, err := s.openInput(file)
	if err != nil {
		return nil, err
	}
	dec, err := s.decoderFor(file, in)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return dec, nil
}

func (s *Source) openInput(file inputFile) (*input, error) {
	in := &input{}
	var r io.Reader = s.stdin
	if !file.stdin {
		f, err := os.Open(file.name)
		if err != nil {
			return nil, err
		}
		in.file, r = f, f
		in.closers = append(in.closers, f.Close)
	}
	in.counter = &counter{r: r, n: &s.read}
	in.Reader = bufio.NewReaderSize(in.counter, readBuffer)
	if err := in.decompress(file); err != nil {
		return nil, errors.Join(err, in.close())
	}
	return in, nil
}

// decompress looks at the first bytes, and puts the decompression that they ask
// for before the content.
func (in *input) decompress(file inputFile) error {
	head, err := in.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var r io.Reader
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(in.Reader)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err = in.openZstd()
	default:
		return foreign(file, head)
	}
	if err != nil {
		return cutShort(err)
	}
	in.compressed = true
	in.Reader = bufio.NewReaderSize(&decompressor{r: r}, readBuffer)
	return nil
}

// openZstd decompresses in the caller's goroutine, so that none is left behind and
// memory stays flat. The window of 128 MiB is the largest that zstd uses unless it
// is told to by --long.
func (in *input) openZstd() (io.Reader, error) {
	z, err := zstd.NewReader(in.Reader, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, err
	}
	in.closers = append(in.closers, func() error { z.Close(); return nil })
	return z, nil
}

// foreign refuses what is compressed or packed in a way that isn't read here.
func foreign(file inputFile, head []byte) error {
	switch {
	case len(head) == 6 && string(head[:3]) == "BZh" && string(head[4:]) == "1A":
		return errors.New("the file is compressed by bzip2: bzip2 -dc FILE | windrow … - reads it")
	case string(head) == "\xfd7zXZ\x00":
		return errors.New("the file is compressed by xz: xz -dc FILE | windrow … - reads it")
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return errors.New("the file is a zip archive, or a spreadsheet: unpack it, or save it as CSV")
	}
	if len(head) == 0 && isCompressedName(file.name) {
		return errors.New("the file is empty, which no compressed file is: is it complete?")
	}
	return nil
}

func (in *input) close() error {
	var err error
	for _, c := range in.closers {
		err = errors.Join(err, c())
	}
	in.closers = nil
	return err
}

// cutShort explains the error of a compressed file that ends too early.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the compressed data ends too early: is the file complete? %w", io.ErrUnexpectedEOF)
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return fmt.Errorf("it was compressed with a window of more than 128 MiB; zstd -dc --long=31 FILE | windrow … - reads it: %w", err)
	}
	return fmt.Errorf("decompress: %w", err)
}

// decompressor explains the errors of what it reads.
type decompressor struct{ r io.Reader }

func (d *decompressor) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && err != io.EOF {
		err = cutShort(err)
	}
	return n, err
}

// counter counts what is read through it.
type counter struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
