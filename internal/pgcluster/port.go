package pgcluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn below the range from which systems serve outgoing connections
// (Linux: from 32768). A port of that range could be taken while a killed server
// is down, or worse: a client that keeps dialling it would some day be given the
// same port as its own and be connected to itself.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePort draws a port of the loopback address on which nobody listens now.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, errors.Join(errors.New("no free port on 127.0.0.1 between 20000 and 32000"), last)
}
