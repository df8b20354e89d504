// Package bench measures windrow on real servers with real worker processes. It
// holds Go benchmarks only:
//
//	go test ./bench -bench Drain -benchtime 1x -timeout 1h -rows 1000000 -processes 8
//	go test ./bench -bench Load  -benchtime 1x -timeout 1h -rows 3000000
//
// Each starts a private PostgreSQL with fsync on, and removes it.
package bench
