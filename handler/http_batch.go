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

// HandleBatch posts the rows as one JSON array of objects
//
//	{"id":7,"key":"a","attempt":1,"idempotency_key":"…/7/0","data":…}
//
// where key may be null, and expects a JSON array with one answer for each row,
// in any order:
//
//	{"id":7,"result":…}
//	{"id":8,"error":"…","permanent":true}
//	{"id":9,"error":"…","retry_after":30,"cost":0.02}
//
// What answers may say, and what becomes of one that makes no sense in itself, is
// the same as for a [Stream]'s child. The request's Idempotency-Key is a hash of the
// rows' own, whatever their order, and Windrow-Attempt the highest of theirs. The
// response's Windrow-Cost is shared out evenly among the rows, beside what their
// answers say.
//
// The replies are in the order of the rows. A row without an answer has an error,
// and is tried again. If the response is not such an array, or an answer has no id,
// the id of no row of the batch, or that of an answer before, nothing in it is
// trusted: the batch fails as a whole.
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
	answers, err := h.splitAnswers(jsonText(body))
	if err != nil {
		return nil, err
	}
	places := make(map[int64]int, len(rows))
	for i, row := range rows {
		places[row.ID] = i
	}
	replies := make([]model.Reply, len(rows))
	answered := make([]bool, len(rows))
	show := h.safe
	for i, text := range answers {
		answer, ok := parseAnswer(text, show)
		place, ours := places[answer.id]
		switch {
		case !isSet(answer.idText):
			return nil, fmt.Errorf("answer %d of the batch has no id", i+1)
		case !ok || !ours:
			return nil, fmt.Errorf("answer %d of the batch has the id %s, which no row of the batch has", i+1, answer.excerpt(answer.idText, valueBytes))
		case answered[place]:
			return nil, fmt.Errorf("answer %d of the batch has the id %d, which an answer before it has", i+1, answer.id)
		}
		answered[place] = true
		result, cost, err := answer.decode()
		replies[place] = replyOf(result, cost+share, err)
	}
	for i := range rows {
		if !answered[i] {
			replies[i] = replyOf(nil, share, errors.New("the response to the batch has no answer to this row"))
		}
	}
	return replies, nil
}

// splitAnswers returns the elements of the array, all of them valid JSON.
func (h *HTTP) splitAnswers(body []byte) ([]json.RawMessage, error) {
	var answers []json.RawMessage
	if len(body) == 0 || body[0] != '[' {
		begin := h.safe(string(body[:min(len(body), beginBytes)]))
		return nil, fmt.Errorf("the response to a batch must be a JSON array of answers; it begins %q", begin)
	}
	if err := json.Unmarshal(body, &answers); err != nil {
		return nil, fmt.Errorf("the response to a batch must be a JSON array of answers: %w", err)
	}
	return answers, nil
}
