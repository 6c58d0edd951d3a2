# `make help` lists the targets. The tools are pinned in tools/go.mod and built into bin/.

# Tests run as "$(GOTEST) -race ./..."; CI puts a command here that also counts them.
GOTEST ?= go test
# What the gateway does most, for the compiler. It is no default.pgo, so that `go run ./cmd/roster` need not
# compile every package once more. `make profile` takes it anew.
PGO := cmd/roster/hot.pgo
# How long `make fuzz` tries each fuzz target, and how often `make stress` repeats each test.
FUZZTIME ?= 10s
COUNT ?= 20
# How long `make soak` lasts.
SOAK ?= 10m
# What `make fuzz`, `make stress` and `make microbench` look at.
PKG ?= ./...

# Directories of all modules of this repository. Formatting, vet and tidy cover all of them.
MODULES := $(sort $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path '*/node_modules/*' -not -path '*/testdata/*' -not -path './.*/*'))))
# Those whose tests need nothing but Go. The others have a target of their own.
GOMODULES := $(filter-out ./interop ./conformance,$(MODULES))

# Runs $(1) in each of the directories $(2), all of them even if one fails.
each = @code=0; for dir in $(2); do (cd $$dir && $(1)) || { echo "failed in $$dir" >&2; code=1; }; done; exit $$code

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile every package, and bin/roster
	go build ./...
	$(if $(wildcard cmd/roster),go build -trimpath -pgo=$(PGO) -o bin/roster ./cmd/roster)

# What the binaries of a release are made for.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# The version is that of the tag or commit, which go build writes into the program by itself.
.PHONY: dist
dist: ## static binaries for PLATFORMS, man pages, completions and checksums, in dist/
	rm -rf dist
	@set -e; for platform in $(PLATFORMS); do \
		os=$${platform%/*}; arch=$${platform#*/}; name=roster-$$os-$$arch; \
		if [ $$os = windows ]; then name=$$name.exe; fi; \
		echo $$name; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -pgo=$$PWD/$(PGO) -buildvcs=auto -ldflags='-s -w -buildid=' -o dist/$$name ./cmd/roster; \
	done
	go run ./cmd/roster docs man dist/man
	mkdir -p dist/completions
	@set -e; for shell in bash zsh fish powershell; do go run ./cmd/roster completion $$shell > dist/completions/roster.$$shell; done
	cd dist && { sha256sum roster-* 2>/dev/null || shasum -a 256 roster-*; } > SHA256SUMS

.PHONY: dist-check
dist-check: ## build what is committed twice, at two paths and without a build cache, and compare the bytes
	@set -e; commit=$$(git rev-parse HEAD); tmp=$$(mktemp -d); trap 'chmod -R u+w "$$tmp"; rm -rf "$$tmp"' EXIT; \
	for copy in one another/place; do \
		git clone -q "$$(git rev-parse --show-toplevel)" "$$tmp/$$copy"; git -C "$$tmp/$$copy" checkout -q --detach "$$commit"; \
		GOCACHE="$$tmp/cache" $(MAKE) -s -C "$$tmp/$$copy" dist PLATFORMS='$(PLATFORMS)'; \
		rm -rf "$$tmp/cache"; \
	done; \
	diff -r "$$tmp/one/dist" "$$tmp/another/place/dist"; echo "the same bytes twice"

.PHONY: docs
docs: ## write docs/commands from what the commands say of themselves
	rm -rf docs/commands
	go run ./cmd/roster docs markdown docs/commands

.PHONY: test
test: ## run the tests under the race detector
	$(call each,$(GOTEST) -race ./...,$(GOMODULES))

.PHONY: check
check: format tidy build vet lint test ## everything a change must pass: format, tidy, build, vet, lint, test

.PHONY: format
format: bin/golangci-lint ## check the formatting (gofumpt); make fmt repairs it
	bin/golangci-lint fmt --diff

.PHONY: fmt
fmt: bin/golangci-lint ## format all Go files
	bin/golangci-lint fmt

.PHONY: tidy
tidy: ## check that every go.mod and go.sum is tidy
	$(call each,go mod tidy -diff,$(MODULES))

.PHONY: vet
vet: ## go vet, for linux, windows and darwin
	$(call each,GOOS=linux go vet ./...,$(MODULES))
	GOOS=windows go vet ./...
	GOOS=darwin go vet ./...

.PHONY: lint
lint: bin/golangci-lint ## static checks of .golangci.yml, for linux, windows and darwin
	GOOS=linux bin/golangci-lint run ./...
	GOOS=windows bin/golangci-lint run ./...
	GOOS=darwin bin/golangci-lint run ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s), in PKG (./...)
	@set -e; for pkg in $$(go list $(PKG)); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: stress
stress: ## repeat the tests of PKG COUNT (20) times, on 1, 2 and 8 processors; ROSTER_STRESS=1 makes those of the gateway longer
	go test -race -count $(COUNT) -cpu 1,2,8 -failfast $(PKG)

.PHONY: soak
soak: ## use the gateway for SOAK (10m) while most of its servers misbehave; ROSTER_SOAK_SEED=N chooses the faults
	ROSTER_SOAK=$(SOAK) go test -race -count 1 -run '^TestSoak$$' -timeout 0 -v ./internal/app

.PHONY: bench
bench: ## measure the gateway against bare references (bench/README.md)
	$(MAKE) -C bench run

.PHONY: interop
interop: ## run foreign clients and servers, of Go and npm, against the gateway
	$(MAKE) -C interop run

.PHONY: browser
browser: ## log in to a server through the gateway with a real browser, Chromium
	$(MAKE) -C interop browser

.PHONY: conformance
conformance: ## run the protocol's conformance suite against the library and through the gateway
	$(MAKE) -C conformance test run

.PHONY: profile
profile: ## take the profile anew that release builds are compiled with, on a quiet machine
	$(MAKE) -C bench run FLAGS='-only roster -rounds 10 -duration 500ms -run "call .* c16|list c16" -o /dev/null -profile $(CURDIR)/bin/hot.pgo'
	go tool pprof -proto bin/hot.pgo > $(PGO)

.PHONY: microbench
microbench: ## run the Go benchmarks in PKG (./...)
	go test -run '^$$' -bench . -benchmem $(PKG)

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist

bin/golangci-lint: tools/go.mod tools/go.sum
	go build -C tools -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/testcount: $(wildcard tools/testcount/*.go) tools/go.mod
	go build -C tools -o ../bin/testcount ./testcount
