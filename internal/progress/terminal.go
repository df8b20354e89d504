package progress

import (
	"io"
	"os"

	"github.com/vbauerster/cupwriter"
	"github.com/vbauerster/mpb/v8"
)

// toTerminal lets bars be drawn on out.
func toTerminal(out io.Writer) mpb.ContainerOption {
	console := cupwriter.New(fromMargin{out}, false)
	if f, ok := out.(*os.File); ok {
		console.SetTermFd(int(f.Fd()))
	}
	return mpb.WithConsoleWriter(console)
}

// fromMargin begins each write at the left margin. A key typed meanwhile, such as
// Ctrl-C, has left its echo there and moved the cursor, from where the bar would be
// cleared in part.
type fromMargin struct{ out io.Writer }

func (w fromMargin) Write(p []byte) (int, error) {
	n, err := w.out.Write(append([]byte{'\r'}, p...))
	return max(n-1, 0), err
}
