// Package model holds the words of windrow as types: the row of work, the claim
// on it, the outcome that ends the claim, and the states between. It does no I/O
// and imports nothing else of windrow; everything else imports it.
//
// A dataset is one row of the table that is its own queue. A worker checks it
// out and gets a [Claim]; processes it with no transaction open; and checks in an
// [Outcome]. The claim's token, the row's checkouts counter at check-out, makes
// every older claim on the same row powerless as soon as a newer one exists.
//
//	        check out                    check in: done
//	fresh ────────────▶ in flight ─────────────────────▶ done
//	  ▲  ▲                │  │ │   check in: failed
//	  │  └── release ─────┘  │ └───────────────────────▶ failed
//	  │                      │ check in: retry
//	  │      ┌───────────────┴──────▶ waiting ──(time)──▶ check out
//	  │      └─ lease runs out ─────▶ expired ──────────▶ check out
//	  └──────────────────────── reprocess ◀──────────── done, failed
package model
