package intake

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
)

// stdinName stands for standard input in messages.
const stdinName = "standard input"

// decoder reads the records of one file.
type decoder interface {
	// next appends the data of the next record to dst, and tells its position.
	// The error is io.EOF after the last one, or a *BadRecord without its
	// file's name.
	next(dst []byte) (data []byte, line int64, err error)
	close() error
}

// Source reads the rows of one file after another. Its methods are for one
// goroutine at a time, except [Source.Progress].
type Source struct {
	opts  Options
	files []inputFile
	stdin io.Reader

	current inputFile
	dec     decoder
	slab    []byte // what is left of it holds the next records
	err     error  // what every further Next returns

	base  int64 // bytes of the files before the current one
	read  atomic.Int64
	total int64
}

// slabBytes is the size of the pieces of memory that records are cut from: one
// allocation for hundreds of records rather than one for each.
const slabBytes = 256 << 10

// Open makes a source of the named files, to be read in this order; "-" is stdin
// and may stand once. That the files exist is seen at once; what is in them, by
// Next. Close the source in any case.
func Open(names []string, stdin io.Reader, opts Options) (*Source, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("no input file is named")
	}
	s := &Source{opts: opts, stdin: stdin}
	known, seenStdin := true, false
	for _, name := range names {
		file, err := s.look(name)
		if err != nil {
			return nil, err
		}
		if file.stdin && seenStdin {
			return nil, errors.New(`"-" (standard input) is named twice`)
		}
		seenStdin = seenStdin || file.stdin
		known = known && file.regular
		s.total += file.size
		s.files = append(s.files, file)
	}
	if !known {
		s.total = 0
	}
	return s, nil
}

// look finds out what can be known of a file without reading it.
func (s *Source) look(name string) (inputFile, error) {
	if name == "-" {
		file := inputFile{name: stdinName, stdin: true}
		if f, ok := s.stdin.(interface{ Stat() (fs.FileInfo, error) }); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				file.size, file.regular = info.Size(), true
			}
		}
		return file, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return inputFile{}, fmt.Errorf("open input: %w", err)
	}
	if info.IsDir() {
		return inputFile{}, fmt.Errorf("open input %s: it is a folder; name the files in it", name)
	}
	file := inputFile{name: name, regular: info.Mode().IsRegular()}
	if file.regular {
		file.size = info.Size()
	}
	return file, nil
}

// Next returns the next record; the error is io.EOF after the last. A
// [*BadRecord] is the error for a record that can't be used: Next may be called
// again for the record after it, unless it is Fatal. After any other error, or a
// fatal one, Next returns the same again.
func (s *Source) Next() (Record, error) {
	for s.err == nil {
		if s.dec == nil && !s.openNext() {
			break
		}
		rest := s.slab[len(s.slab):]
		data, line, err := s.dec.next(rest)
		if err == nil {
			return Record{File: s.current.name, Line: line, Data: s.take(rest, data)}, nil
		}
		if err != io.EOF {
			return Record{}, s.fail(err)
		}
		s.err = s.closeCurrent()
		s.base += s.current.size
		s.read.Store(max(s.read.Load(), s.base))
	}
	return Record{}, s.err
}

// take keeps what a decoder appended to the rest of the slab.
func (s *Source) take(rest, data []byte) []byte {
	const small = slabBytes / 8
	moved := cap(data) != cap(rest) // it didn't fit and has memory of its own
	switch {
	case moved && len(data) < small, !moved && cap(rest)-len(data) < slabBytes/64:
		s.slab = make([]byte, 0, slabBytes)
	case !moved:
		s.slab = s.slab[:len(s.slab)+len(data)]
	}
	return data[:len(data):len(data)]
}

// fail names the file in an error, and remembers one that is final.
func (s *Source) fail(err error) error {
	var bad *BadRecord
	if errors.As(err, &bad) {
		bad.File = s.current.name
		if bad.Fatal {
			s.err = err
		}
		return err
	}
	s.err = fmt.Errorf("read %s: %w", s.current.name, err)
	return s.err
}

// openNext opens the next file; where there is none, or it can't be opened, it
// sets err and returns false.
func (s *Source) openNext() bool {
	if len(s.files) == 0 {
		s.err = io.EOF
		return false
	}
	s.current, s.files = s.files[0], s.files[1:]
	dec, err := s.open(s.current)
	if err != nil {
		s.err = s.fail(err)
		return false
	}
	s.dec = dec
	return true
}

func (s *Source) closeCurrent() error {
	if s.dec == nil {
		return nil
	}
	err := s.dec.close()
	s.dec = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.current.name, err)
	}
	return nil
}

// Progress tells how many bytes of the files have been read, as they lie on the
// disk, and how many there are; total is 0 if that is not known. For Parquet,
// which isn't read from front to back, it is the share of the rows. It may be
// called from another goroutine.
func (s *Source) Progress() (read, total int64) { return s.read.Load(), s.total }

// Close closes the file being read; it doesn't close stdin. Next returns an error
// afterwards.
func (s *Source) Close() error {
	err := s.closeCurrent()
	if s.err == nil {
		s.err = fs.ErrClosed
	}
	return err
}
