# make help lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
# Two packages' tests at a time: each may run servers of its own.
TESTFLAGS ?= -shuffle=on -timeout 20m -p 2
PACKAGES ?= ./...

.PHONY: help build test race lint fmt bench tools clean servers

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/windrow
	$(GO) build -o bin/windrow ./cmd/windrow

# The race detector needs cgo, and so a C compiler; without one the tests still
# run, and it is said.
test: servers ## run all tests, with the race detector, on private servers
	@if command -v "$$($(GO) env CC)" >/dev/null; then race=-race; \
	else echo "no C compiler (gcc or clang): running without the race detector" >&2; race=; fi; \
	set -x; CGO_ENABLED=$${race:+1} $(GO) test $$race $(TESTFLAGS) $(PACKAGES)

race: servers ## the same, but a missing C compiler is an error
	CGO_ENABLED=1 $(GO) test -race $(TESTFLAGS) $(PACKAGES)

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted; make fmt does it:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

fmt: ## format all Go files
	gofmt -w .

bench: servers ## a short load test: fails when a row is lost or handed out twice
	$(GO) run ./cmd/windrow bench throughput --rows 20000 --processes 2 --subject windrow,limit,skip-locked
	$(GO) run ./cmd/windrow bench crash --rows 100000

tools: ## build the tools that make lint uses, so that it need not wait
	$(GO) tool -modfile=tools/go.mod staticcheck -version

clean: ## remove what make build made
	rm -rf bin

servers:
	@scripts/ensure-postgres.sh
