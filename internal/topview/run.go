package topview

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"
)

// Options say what is watched, and how.
type Options struct {
	Job Job
	// Name is that of the job's database, without a password.
	Name string
	// By is who pauses the job.
	By string
	// Explain words an error of Job for people.
	Explain func(error) string
	// Terminal is where the view is shown; nil: the process's own.
	Terminal tcell.Tty
}

// Run shows the job until the user quits or ctx ends, neither of which is an error.
// However it ends, also by a panic, the terminal is as it was before.
func Run(ctx context.Context, o Options) error {
	screen, err := openScreen(o.Terminal)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{job: o.Job, by: o.By, explain: o.Explain, changes: make(chan func(*State)), again: make(chan struct{}, 1)}
	defer w.running.Wait() // third: what has been asked of the database is cut off
	defer screen.Fini()    // second
	defer cancel()         // first
	w.start(ctx, w.looks)
	w.start(ctx, w.readings)
	state := &State{Name: clean(o.Name, mostShown), ASCII: screen.CharacterSet() != "UTF-8" || os.Getenv("RUNEWIDTH_EASTASIAN") != ""}
	return w.show(ctx, screen, state)
}

// openScreen takes the terminal over. Standard input is not touched but opened anew as
// /dev/tty: it is shared with the shell, which would find it in another mode.
func openScreen(terminal tcell.Tty) (tcell.Screen, error) {
	if terminal == nil {
		tty, err := tcell.NewDevTty()
		if err != nil {
			return nil, fmt.Errorf("open the terminal: %w", err)
		}
		terminal = tty
	}
	// Nothing is asked of the terminal: some never answer, and what is used all have.
	screen, err := tcell.NewTerminfoScreenFromTty(terminal, tcell.OptNegotiation(false))
	if err == nil {
		err = screen.Init()
	}
	if err != nil {
		return nil, fmt.Errorf("open the terminal: %w", err)
	}
	return screen, nil
}

// show draws the state whenever it has changed, and once a second for the clock.
func (w *watch) show(ctx context.Context, screen tcell.Screen, state *State) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		state.Clock = time.Now()
		width, height := screen.Size()
		draw(screen, state.Frame(width, height))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case change := <-w.changes:
			change(state)
		case event := <-screen.EventQ():
			switch event := event.(type) {
			case *tcell.EventError:
				return fmt.Errorf("read from the terminal: %w", event)
			case *tcell.EventKey:
				if event.Key() == tcell.KeyCtrlL {
					screen.Sync()
				}
				action := state.Press(keyOf(event), width, height)
				if action == Quit {
					return nil
				}
				w.do(ctx, action)
			}
		}
	}
}

// draw puts a frame on the screen.
func draw(screen tcell.Screen, f Frame) {
	styles := styles
	if screen.Colors() == 0 {
		styles = colourless
	}
	screen.Clear()
	for y, line := range f {
		x := 0
		for _, span := range line {
			for text, w := span.Text, 0; text != ""; x += w {
				if text, w = screen.Put(x, y, text, styles[span.Style]); w == 0 {
					break
				}
			}
		}
	}
	screen.Show()
}

// styles are those of the terminal. The sixteen colours are the user's own.
var styles = map[Style]tcell.Style{
	Plain:  tcell.StyleDefault,
	Faint:  tcell.StyleDefault.Dim(true),
	Strong: tcell.StyleDefault.Bold(true),
	Title:  tcell.StyleDefault.Reverse(true),
	Good:   tcell.StyleDefault.Foreground(color.Green),
	Warn:   tcell.StyleDefault.Foreground(color.Olive).Bold(true),
	Bad:    tcell.StyleDefault.Foreground(color.Maroon),
	Alarm:  tcell.StyleDefault.Foreground(color.Maroon).Reverse(true).Bold(true),
}

// colourless are those of a terminal without colours, or of a user who wants none
// (NO_COLOR): asked for one, the library would reverse the text, bars included.
var colourless = map[Style]tcell.Style{
	Plain:  tcell.StyleDefault,
	Faint:  tcell.StyleDefault.Dim(true),
	Strong: tcell.StyleDefault.Bold(true),
	Title:  tcell.StyleDefault.Reverse(true),
	Good:   tcell.StyleDefault,
	Warn:   tcell.StyleDefault.Bold(true),
	Bad:    tcell.StyleDefault.Bold(true),
	Alarm:  tcell.StyleDefault.Reverse(true).Bold(true),
}

var keys = map[tcell.Key]Key{
	tcell.KeyCtrlC: KeyInterrupt,
	tcell.KeyUp:    KeyUp, tcell.KeyDown: KeyDown,
	tcell.KeyPgUp: KeyPageUp, tcell.KeyPgDn: KeyPageDown,
	tcell.KeyHome: KeyHome, tcell.KeyEnd: KeyEnd,
}

var letters = map[string]Key{
	"q": KeyQuit, "Q": KeyQuit, "p": KeyPause, "P": KeyPause, "e": KeyErrors, "E": KeyErrors, "?": KeyHelp, "h": KeyHelp,
	"y": KeyYes, "Y": KeyYes, "k": KeyUp, "j": KeyDown,
}

func keyOf(event *tcell.EventKey) Key {
	if event.Key() == tcell.KeyRune {
		return letters[event.Str()]
	}
	return keys[event.Key()]
}
