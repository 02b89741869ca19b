# One target, one question. `make` answers "may I push this?".
TOOL   = go tool -modfile=tools.mod
PKGS   = ./...
BENCH_DIR = $(CURDIR)/bin/bench-data
GOLDEN = $(shell grep -rl --include='*_test.go' '"update"' . | xargs -n1 dirname | sort -u)
CRASH  = $(wildcard ./pagelog ./fork ./authority)

.PHONY: check fmt lint test race cross crash torture mutants mutation fuzz fuzz-short bench bench-quick bench-check bench-self golden demo clean help
check: fmt lint test cross ## may I push this?

fmt: ## does it look like the rest?
	@test -z "$$($(TOOL) gofumpt -l . | tee /dev/stderr)"
	@go fix -diff $(PKGS)
lint: ## does a second reader object?
	@go vet $(PKGS)
	@$(TOOL) staticcheck -checks=all $(PKGS)
test: ## does it work?
	@go test $(PKGS)
race: ## does it work when everything happens at once?
	@go test -race -count=1 $(PKGS)
cross: ## does it compile where we are not?
	@GOOS=windows go vet $(PKGS) && GOOS=darwin go vet $(PKGS) && GOARCH=386 go vet $(PKGS)
crash: ## does it survive every crash we can build? CRASH_MINUTES=10 for the gate
	@go test $(if $(CRASH_MINUTES),-v) -tags=invariants -run='Crash|Recover' -count=1 -timeout=20m $(CRASH)
torture: ## and as long as you like? make torture MINUTES=600 BITS=16
	@CRASH_MINUTES=$(or $(MINUTES),60) CRASH_BITS=$(or $(BITS),16) go test -tags=invariants -run='^TestCrash_Gate$$' -count=1 -timeout=0 -v ./pagelog
mutants: ## does a test notice each bug of a list? A few minutes
	@go run ./fuzz/mutants $(if $(NAME),-name '$(NAME)')
mutation: ## and bugs that nobody thought of? make mutation N=300 SEED=1; hours
	@go run ./fuzz/mutants -general $(or $(N),300) -seed $(or $(SEED),1) -least 0.9
fuzz: ## what does a hostile file do? make fuzz TARGET=FuzzGroup PKG=./frame TIME=1m
	@go test -run='^$$' -fuzz='^$(TARGET)$$' -fuzztime=$(or $(TIME),30s) $(or $(PKG),./fuzz)
bench: ## how does it compare? Every rival, every workload; at most an hour
	@cd bench && go build -o ../bin/tmbench ./cmd/tmbench && ../bin/tmbench run -dir $(BENCH_DIR) && ../bin/tmbench plot && ../bin/tmbench table -doc ../docs/BENCHMARKS.md
bench-quick: ## the same in five minutes, for a first look
	@cd bench && go build -o ../bin/tmbench ./cmd/tmbench && ../bin/tmbench run -quick -dir $(BENCH_DIR) -out ../bin/quick.json
bench-check: ## does the last run reach the bars?
	@cd bench && go build -o ../bin/tmbench ./cmd/tmbench && ../bin/tmbench check
bench-self: ## what do our own steps cost beside a raw loop, in time, device bytes and flushes?
	@go test -run='^$$' -bench='^Benchmark(Commit|GroupCommit|Replay|At|Open|Verify)$$' -benchtime=$(or $(TIME),1s) -timeout=20m ./pagelog
fuzz-short: ## does any fuzz target fail within seconds?
	@./fuzz/run $(or $(TIME),5s)
golden: ## accept new golden files; read the diff before you commit it
	@go test -count=1 $(GOLDEN) -update
demo: ## what does it promise, and does that hold?
	@go run ./cmd/tidemark demo
clean: ## is anything left over?
	@rm -rf bin
	@find . -name '*.test' -type f -not -path './.git/*' -delete
help: ## what can I ask?
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 8
