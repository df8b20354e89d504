package bench

import "time"

// Result is one measured run, and a line of JSON. Its shape is stable: fields are
// added, never renamed. Times are in the unit that the name ends with.
type Result struct {
	Scenario string `json:"scenario"` // throughput, drain, ...
	Subject  string `json:"subject"`  // what was measured: windrow, limit, skip-locked, naive, river, ...
	Case     string `json:"case"`     // what sets this run apart from others of its scenario; may be empty
	Round    int    `json:"round"`    // 1, 2, ...: which repetition

	Parameters Parameters `json:"parameters"`
	Machine    Machine    `json:"machine"`
	Server     Server     `json:"server"`
	Began      time.Time  `json:"began"`

	Seconds       float64 `json:"seconds"` // first check-out to last check-in
	Done          int64   `json:"done"`    // rows finished
	RowsPerSecond float64 `json:"rows_per_second"`
	FirstQuarter  float64 `json:"first_quarter_rows_per_second"`
	LastQuarter   float64 `json:"last_quarter_rows_per_second"`
	PerSecond     []int64 `json:"per_second"` // rows finished in each second since the first check-out

	CheckOuts      int64   `json:"check_outs"`       // that brought rows
	EmptyCheckOuts int64   `json:"empty_check_outs"` // that brought none
	CheckOutP50    float64 `json:"check_out_p50_ms"`
	CheckOutP95    float64 `json:"check_out_p95_ms"`
	CheckOutP99    float64 `json:"check_out_p99_ms"`

	Conflicts            map[string]int64 `json:"conflicts"` // by operation and reason
	ConflictsPerCheckOut float64          `json:"conflicts_per_check_out"`

	WALBytesPerRow float64 `json:"wal_bytes_per_row,omitempty"`
	DeadTuples     int64   `json:"dead_tuples,omitempty"`
	ServerMicros   float64 `json:"server_cpu_us_per_row,omitempty"` // absent for a server on another machine
	ClientMicros   float64 `json:"client_cpu_us_per_row,omitempty"`
	ClientMemory   int64   `json:"client_memory_bytes,omitempty"` // the largest process's peak

	Lost    int64 `json:"lost"`    // rows not finished, or finished without a result
	Doubled int64 `json:"doubled"` // rows handed out while another claim was good

	// Figures are the scenario's own, such as slots_busy or last_percent_seconds;
	// [AboutFigure] says what each means.
	Figures map[string]float64 `json:"figures,omitempty"`
}

// Parameters are what a run was asked to do.
type Parameters struct {
	Rows        int     `json:"rows"`
	Processes   int     `json:"processes"`
	Concurrency int     `json:"concurrency"`             // slots of each process
	Batch       int     `json:"batch"`                   // most rows of a check-out; 0: automatic
	Payload     int     `json:"payload_bytes"`           // of each row's data
	Seconds     float64 `json:"limit_seconds,omitempty"` // 0: until all rows are done
}

// Machine is where clients, and mostly the server, ran.
type Machine struct {
	System    string `json:"system"` // linux/amd64
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Memory    int64  `json:"memory_bytes"`
	Go        string `json:"go"`
}

// Server is the database that was measured.
type Server struct {
	Engine   string            `json:"engine"` // PostgreSQL or SQLite
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"` // those that matter for speed
}
