package checkout

import "context"

// keyCanceller is a store that cancels rows, and knows their keys.
type keyCanceller interface {
	Cancel(ctx context.Context, id int64) error
	idsOf(ctx context.Context, keys []string) (map[string]int64, error)
}

// cancelKey cancels the row with a key, which is its own for good.
func cancelKey(ctx context.Context, s keyCanceller, key string) error {
	found, err := s.idsOf(ctx, []string{key})
	if err != nil {
		return err
	}
	id, there := found[key]
	if !there {
		return ErrNotFound
	}
	return s.Cancel(ctx, id)
}

// standing is the error for a row that is there and could not be cancelled. One that is
// not held any more by now was so a moment ago.
func standing(processed bool) error {
	if processed {
		return ErrProcessed
	}
	return ErrHeld
}
