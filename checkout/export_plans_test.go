package checkout

// Plan is a plan as the server writes it, and its rule, for tests that read plans
// from a server's log.
type Plan = plan

// Fault is what is wrong with the plan, if anything.
func (p plan) Fault(allowed []string) string { return p.fault(allowed) }

// The indexes meant, and the ways to read the table by one.
const (
	QueueIndex = queueIndex
	KeyIndex   = keyIndex
)

var ScansBy = scansBy
