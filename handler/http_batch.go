package handler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windrow-go/windrow/model"
)

// httpRow is a row of a batch, as the service sees it.
type httpRow struct {
	ID             int64           `json:"id"`
	Key            *string         `json:"key"`
	Attempt        int32           `json:"attempt"`
	IdempotencyKey string          `json:"idempotency_key"`
	Data           json.RawMessage `json:"data"`
}

// httpAnswer is the service's answer to one row of a batch.
type httpAnswer struct {
	ID          json.Number     `json:"id"` // a number, or the same as a string
	Result      json.RawMessage `json:"result"`
	Error       json.RawMessage `json:"error"`
	RetryAfter  json.RawMessage `json:"retry_after"`
	Permanent   bool            `json:"permanent"`
	Unavailable bool            `json:"unavailable"`
	Cost        float64         `json:"cost"`
}

// HandleBatch posts the rows as one JSON array of objects
//
//	{"id":7,"key":"a","attempt":1,"idempotency_key":"…/7/0","data":…}
//
// where key may be null, and expects a JSON array with one answer for each row,
// in any order:
//
//	{"id":7,"result":…}
//	{"id":8,"error":"…","retry_after":30,"permanent":true,"unavailable":true}
//
// An error that is not null (and not "") makes the answer one of failure;
// retry_after (seconds, or a text such as "90s"), permanent and unavailable may be
// left out. Both kinds may have "cost". Other members are ignored. The request's
// Idempotency-Key is a hash of the rows' own, whatever their order, and
// Windrow-Attempt the highest of theirs. The response's Windrow-Cost is shared out
// evenly among the rows, beside what their answers say.
//
// The replies are in the order of the rows. A row without an answer, or whose
// answer makes no sense in itself (neither result nor error, or both), has an
// error, and is tried again. If the response is not such an array, or an answer
// has no id, the id of no row of the batch, or that of an answer before, nothing
// in it is trusted: the batch fails as a whole.
//
// An error is about the batch as a whole. In a batch of several rows it is never
// marked by [model.Permanent]: whose fault it is, shows when the rows are posted
// alone.
func (h *HTTP) HandleBatch(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	replies, err := h.postBatch(ctx, rows)
	if len(rows) > 1 && model.IsPermanent(err) {
		return nil, errors.New(err.Error())
	}
	return replies, err
}

func (h *HTTP) postBatch(ctx context.Context, rows []model.Dataset) ([]model.Reply, error) {
	body, err := batchBody(rows)
	if err != nil {
		return nil, err
	}
	attempt := int32(0)
	for _, row := range rows {
		attempt = max(attempt, row.Attempts)
	}
	response, err := h.post(ctx, h.requestHeader(batchKey(rows), attempt), body)
	if err == nil {
		err = h.statusError(response)
	}
	if err != nil {
		return nil, err
	}
	cost, _, err := costIn(response.header)
	if err != nil {
		return nil, model.Permanent(err)
	}
	return h.batchReplies(rows, response.body, cost/float64(len(rows)))
}

func batchBody(rows []model.Dataset) ([]byte, error) {
	size := 2
	for _, row := range rows {
		size += len(row.Data) + 200
	}
	body := bytes.NewBuffer(make([]byte, 0, size))
	separator := byte('[')
	encoder := json.NewEncoder(body) // json.Marshal would copy all of it again
	encoder.SetEscapeHTML(false)
	for _, row := range rows {
		body.WriteByte(separator)
		separator = ','
		if len(row.Data) == 0 {
			row.Data = nil // which is encoded as null
		}
		err := encoder.Encode(httpRow{row.ID, row.Key, row.Attempts, row.IdempotencyKey(), row.Data})
		if err != nil {
			return nil, model.Permanent(fmt.Errorf("row %d: its data is not JSON: %w", row.ID, err))
		}
	}
	body.WriteByte(']')
	return body.Bytes(), nil
}

// batchKey is the same for the same rows in the same rounds.
func batchKey(rows []model.Dataset) string {
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = row.IdempotencyKey()
	}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(keys, "\n")))
	return "batch/" + hex.EncodeToString(sum[:16])
}

// batchReplies sorts the answers by the rows. Each row's cost has share added.
func (h *HTTP) batchReplies(rows []model.Dataset, body []byte, share float64) ([]model.Reply, error) {
	answers, err := h.decodeAnswers(jsonText(body))
	if err != nil {
		return nil, err
	}
	places := make(map[int64]int, len(rows))
	for i, row := range rows {
		places[row.ID] = i
	}
	replies := make([]model.Reply, len(rows))
	answered := make([]bool, len(rows))
	for i, answer := range answers {
		id, err := answer.ID.Int64()
		place, ok := places[id]
		switch {
		case answer.ID == "":
			return nil, fmt.Errorf("answer %d of the batch has no id", i+1)
		case err != nil || !ok:
			return nil, fmt.Errorf("answer %d of the batch has the id %.40s, which no row of the batch has", i+1, answer.ID)
		case answered[place]:
			return nil, fmt.Errorf("answer %d of the batch has the id %d, which an answer before it has", i+1, id)
		}
		answered[place] = true
		replies[place] = h.reply(answer, share)
	}
	for i := range rows {
		if !answered[i] {
			replies[i] = httpAnswer{Cost: share}.failure(errors.New("the response to the batch has no answer to this row"))
		}
	}
	return replies, nil
}

func (h *HTTP) decodeAnswers(body []byte) ([]httpAnswer, error) {
	var answers []httpAnswer
	if len(body) == 0 || body[0] != '[' {
		begin := h.safe(string(body[:min(len(body), beginBytes)]))
		return nil, fmt.Errorf("the response to a batch must be a JSON array of answers; it begins %q", begin)
	}
	if err := json.Unmarshal(body, &answers); err != nil {
		return nil, fmt.Errorf("the response to a batch must be a JSON array of answers: %w", err)
	}
	return answers, nil
}

// reply makes the reply to a row of the service's answer.
func (h *HTTP) reply(answer httpAnswer, share float64) model.Reply {
	if !isCost(answer.Cost) {
		return model.Reply{Err: model.Permanent(fmt.Errorf("the answer's cost, %v, is negative", answer.Cost))}
	}
	answer.Cost += share
	text, failed := answer.errorText()
	switch {
	case !failed && answer.Result == nil:
		return answer.failure(errors.New("the answer to this row has neither result nor error"))
	case failed && answer.Result != nil && string(answer.Result) != "null":
		return answer.failure(errors.New("the answer to this row has both result and error"))
	case failed:
		return answer.failure(errors.New(h.safe(text)))
	case answer.Cost > 0:
		return model.Reply{Result: model.Answer{Result: answer.Result, Cost: answer.Cost}}
	}
	return model.Reply{Result: answer.Result}
}

// errorText returns what the answer's error says, and whether there is one.
func (a httpAnswer) errorText() (string, bool) {
	text := string(a.Error)
	if text == "" || text == "null" || text == `""` {
		return "", false
	}
	var plain string
	if json.Unmarshal(a.Error, &plain) == nil {
		return plain, true
	}
	return text, true
}

// failure is the reply with err, marked as the answer says.
func (a httpAnswer) failure(err error) model.Reply {
	switch {
	case a.Permanent:
		err = model.Permanent(err)
	case a.Unavailable:
		err = model.Unavailable(err)
	}
	if delay, ok := a.delay(); ok {
		err = model.RetryAfter(delay, err)
	}
	if a.Cost > 0 {
		return model.Reply{Result: model.Answer{Cost: a.Cost}, Err: err}
	}
	return model.Reply{Err: err}
}

// delay returns what the answer asks for by retry_after; what makes no sense there
// is ignored, as in the header.
func (a httpAnswer) delay() (time.Duration, bool) {
	var text string
	if json.Unmarshal(a.RetryAfter, &text) == nil && text != "" {
		delay, err := time.ParseDuration(text)
		return boundedDelay(delay), err == nil
	}
	var seconds *float64
	if json.Unmarshal(a.RetryAfter, &seconds) != nil || seconds == nil {
		return 0, false
	}
	return secondsDelay(*seconds), true
}
