package main_test

import (
	"encoding/json"
	"net/http"
	"sync"
)

// requests counts what a service is asked for in batches.
type requests struct {
	mu             sync.Mutex
	calls, largest int
}

func (q *requests) counts() (calls, largest int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls, q.largest
}

// answerBatch answers each row with the double of its n, from the last to the first;
// the row 13 fails for good.
func (q *requests) answerBatch(w http.ResponseWriter, r *http.Request) {
	var rows []struct {
		ID   int64
		Data struct{ N int }
	}
	if err := json.NewDecoder(r.Body).Decode(&rows); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.mu.Lock()
	q.calls, q.largest = q.calls+1, max(q.largest, len(rows))
	q.mu.Unlock()
	answers := make([]map[string]any, 0, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		answer := map[string]any{"id": rows[i].ID, "result": map[string]int{"double": 2 * rows[i].Data.N}}
		if rows[i].Data.N == 13 {
			answer = map[string]any{"id": rows[i].ID, "error": "thirteen", "permanent": true}
		}
		answers = append(answers, answer)
	}
	_ = json.NewEncoder(w).Encode(answers) // whoever asked may have gone
}
