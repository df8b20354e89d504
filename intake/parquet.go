package intake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// parquetDecoder gives each row as an object by column. It reads the columns side
// by side and writes JSON straight from their values: over rows as Go values it
// would take several times as long.
type parquetDecoder struct {
	in     *input
	groups []parquet.RowGroup
	leaves []*leaf
	root   *node
	size   int64
	report func(row, rows int64)

	row, rows int64
	left      int64     // rows not read of the row group that is open
	w         rowWriter // of the row being read; here, since it would be allocated for each
}

// openParquet opens a Parquet file. It needs random access, so what comes from
// standard input or a pipe, or is compressed, is put into a temporary file first.
func (s *Source) openParquet(file inputFile, in *input) (decoder, error) {
	in.counter.n = new(atomic.Int64) // progress is by rows
	s.read.Store(s.base)
	if in.file == nil || in.compressed || !file.regular {
		if err := in.spool(s.opts.TempDir); err != nil {
			return nil, err
		}
	}
	d := &parquetDecoder{in: in}
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("it can't be read as Parquet: %w", err)
	}
	size := file.size
	if size == 0 {
		size = d.size
	}
	d.report = func(row, rows int64) {
		s.read.Store(s.base + int64(float64(size)*float64(row)/float64(rows)))
	}
	return d, nil
}

// spool puts the whole input into a temporary file, which then is its file.
func (in *input) spool(dir string) error {
	f, err := createTemp(dir)
	if err != nil {
		return err
	}
	in.closers = append(in.closers, f.Close)
	if _, err := io.Copy(f, in.Reader); err != nil {
		return fmt.Errorf("put the file into a temporary one: %w", err)
	}
	in.file = f.File
	return nil
}

// open reads the file's footer and makes what reads its columns.
func (d *parquetDecoder) open() (err error) {
	defer recoverParquet(&err)
	info, err := d.in.file.Stat()
	if err != nil {
		return err
	}
	d.size = info.Size()
	if err := checkFooter(d.in.file, d.size); err != nil {
		return err
	}
	file, err := openParquetFile(d.in.file, d.size)
	if err != nil {
		return err
	}
	if err := refuseCodecs(file.Metadata()); err != nil {
		return err
	}
	d.groups, d.rows = file.RowGroups(), file.NumRows()
	d.root, d.leaves, err = newTree(file)
	return err
}

// checkFooter checks what stands at the end of a Parquet file: the length of its
// footer, and PAR1. The library allocates up to 4 GiB on the word of that length.
func checkFooter(f io.ReaderAt, size int64) error {
	const magic = "PAR1"
	var tail [8]byte
	if size < int64(len(magic)+len(tail)) {
		return errors.New("it is too short")
	}
	if _, err := f.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	if string(tail[4:]) != magic {
		return errors.New("it doesn't end in PAR1: is it Parquet, and complete?")
	}
	if length := int64(binary.LittleEndian.Uint32(tail[:])); length > size-int64(len(magic)+len(tail)) {
		return errors.New("its footer is longer than the file: is it complete?")
	}
	return nil
}

// refuseCodecs refuses LZ4_RAW, which the library (v0.32.0) reads wrongly without
// noticing: where a page is less than three times its compressed size, it decodes
// into a buffer of its own and then takes the empty one (parquet-go issue 608).
// The older LZ4 it refuses itself.
func refuseCodecs(meta *format.FileMetaData) error {
	for _, group := range meta.RowGroups {
		for i := range group.Columns {
			if column := &group.Columns[i].MetaData; column.Codec == format.Lz4Raw {
				return fmt.Errorf("column %q is compressed by LZ4_RAW, which can't be read reliably: write the file with zstd, snappy or gzip",
					strings.Join(column.PathInSchema, "."))
			}
		}
	}
	return nil
}

// openParquetFile opens the file with buffers that together stay small even where
// the columns are many.
func openParquetFile(f *os.File, size int64) (*parquet.File, error) {
	options := []parquet.FileOption{parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)}
	file, err := parquet.OpenFile(f, size, options...)
	if err != nil {
		return nil, err
	}
	const most, all, least = 64 << 10, 8 << 20, 4 << 10
	columns := max(len(file.Schema().Columns()), 1)
	options = append(options, parquet.ReadBufferSize(max(min(most, all/columns), least)))
	return parquet.OpenFile(f, size, options...)
}

func (d *parquetDecoder) next(dst []byte) (data []byte, row int64, err error) {
	defer recoverParquet(&err)
	for d.left == 0 {
		if err := d.nextGroup(); err != nil {
			return nil, 0, err
		}
	}
	d.left--
	d.row++
	if d.row%1024 == 0 {
		d.report(d.row, max(d.rows, d.row))
	}
	w := &d.w
	*w = rowWriter{dst: dst}
	d.root.present(w)
	for _, l := range d.leaves {
		if l.err != nil {
			return nil, 0, l.err
		}
	}
	if w.reason == "" {
		if err := jsonb.Check(w.dst); err != nil {
			w.reason = err.Error()
		}
	}
	if w.reason != "" {
		return nil, 0, &BadRecord{Line: d.row, Reason: w.reason, Raw: sample(w.dst), unit: "row"}
	}
	return w.dst, d.row, nil
}

// nextGroup opens the columns of the next row group.
func (d *parquetDecoder) nextGroup() error {
	if len(d.groups) == 0 {
		return io.EOF
	}
	group := d.groups[0]
	d.groups = d.groups[1:]
	d.left = group.NumRows()
	chunks := group.ColumnChunks()
	for _, l := range d.leaves {
		if err := l.open(chunks[l.index]); err != nil {
			return err
		}
	}
	return nil
}

func (d *parquetDecoder) close() error {
	var err error
	for _, l := range d.leaves {
		err = errors.Join(err, l.close())
	}
	return errors.Join(err, d.in.close())
}

// recoverParquet makes an error of a panic: the library panics on some files that
// are damaged.
func recoverParquet(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the file is damaged, or of a kind that is not supported: %v", r)
	}
}
