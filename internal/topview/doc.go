// Package topview is a full-screen view of a job that goes on: how far it has come,
// how fast, who works at it, and what goes wrong.
//
// [Run] looks at the job every second, reads its errors now and then, and shows a
// [State] on the terminal. What the screen looks like is a function of the state and
// the size alone, [State.Frame], and so is what a key does, [State.Press]: both need
// no terminal.
package topview
