package handler_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// soakTimeout is long enough for a child to start on a machine that is busy with
// other things.
const soakTimeout = 5 * time.Second

// misbehave does with a row, at its first try, what its data says, and answers it
// properly at later ones.
const misbehave = `
import json, os, sys, time
os.makedirs(sys.argv[1], exist_ok=True)
def write(text):
    while text:
        text = text[os.write(1, text):]
for line in sys.stdin:
    row = json.loads(line)
    answer = b'{"id":%d,"result":%d}\n' % (row["id"], row["id"] * row["id"])
    tried = sys.argv[1] + "/" + str(row["id"])
    what = row["data"] if not os.path.exists(tried) else "good"
    open(tried, "w").close()
    if what == "die":
        os._exit(1)
    elif what == "segfault":
        os.abort()
    elif what == "close":
        os.close(1)
    elif what == "cut":
        write(answer[:-9])
        os._exit(0)
    elif what == "silent":
        time.sleep(1000)
    elif what == "flood":
        os.write(2, b"x" * 300000)
        write(b"y" * 300000 + b"\n" + answer)
    elif what == "twice":
        write(answer + answer + b'{"id":-5,"result":0}\n')
    elif what == "NaN":
        write(answer.replace(b'result":', b'result":NaN'))
    elif what == "large":
        write(b'{"id":%d,"result":"' % row["id"] + b"x" * 300000 + b'"}\n')
    elif what == "slowly":
        for i in range(len(answer)):
            write(answer[i:i+1])
    elif what == "error":
        write(b'{"id":%d,"error":"an error"}\n' % row["id"])
    elif what == "permanent":
        write(b'{"id":%d,"error":"for good","permanent":true}\n' % row["id"])
    else:
        write(answer)
`

// reasons are how an error may begin that a row is charged with, for each kind of
// misbehaviour that is one.
var reasons = map[string]string{
	"die":       "the child ended: exit status 1",
	"segfault":  "the child ended: killed by SIGABRT",
	"close":     "the child closed its standard output",
	"cut":       "the child ended: exit status 0, in the middle",
	"silent":    "timed out after " + soakTimeout.String(),
	"NaN":       "the answer is not JSON",
	"large":     "the child's answer is larger than 100000 bytes",
	"error":     "an error",
	"permanent": "for good",
}

func TestEveryRowEndsWhateverChildrenDo(t *testing.T) {
	kinds := []string{"flood", "twice", "slowly"}
	for kind := range reasons {
		kinds = append(kinds, kind)
	}
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared=", shared), func(t *testing.T) {
			t.Parallel()
			stream := newStream(t, handler.StreamOptions{
				Shared: shared, Timeout: soakTimeout, MaxOutput: 100_000,
				Args: []string{python(t), "-c", misbehave, t.TempDir() + "/tried"},
			})
			var next atomic.Int64
			var slots sync.WaitGroup
			for range 4 {
				slots.Go(func() {
					for id := next.Add(1); id <= 300; id = next.Add(1) {
						kind := "good"
						if rand.N(20) == 0 {
							kind = kinds[rand.N(len(kinds))]
						}
						if shared && kind == "silent" && id%4 > 0 {
							kind = "good" // it takes everybody's time
						}
						endRow(t, stream, id, kind)
					}
				})
			}
			slots.Wait()
		})
	}
}

// endRow handles a row until it is done, or failed for good.
func endRow(t *testing.T, stream *handler.Stream, id int64, kind string) {
	result, charged := tries(t, stream, numbered(id, `"`+kind+`"`), 1)
	if len(charged) > 0 && !model.IsPermanent(charged[0]) {
		result, _ = tries(t, stream, numbered(id, `"`+kind+`"`), 1)
	}
	if len(charged) > 0 && (reasons[kind] == "" || !strings.HasPrefix(charged[0].Error(), reasons[kind])) {
		t.Errorf("row %d, %s: charged with %v", id, kind, charged)
	}
	permanent := kind == "permanent" || kind == "large"
	if (len(charged) == 0 || !permanent) && result != fmt.Sprint(id*id) {
		t.Errorf("row %d, %s: got %s, charged with %v", id, kind, result, charged)
	}
}
