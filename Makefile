# Go and, for Envoy, python3 with pip are all that must be there; everything
# else is fetched or built into .tools, which git ignores.

SHELL       := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Clients such as kubectl read the version as a semantic one. Without a tag it
# is the release that the tree becomes, with the commit.
COMMIT      := $(shell git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
RELEASE     := $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' internal/release/release.go)
VERSION     := $(shell git describe --tags --dirty 2>/dev/null || echo $(RELEASE)+$(COMMIT))
LDFLAGS     := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
KUBERNETES  := v1.37.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
# The database of vulnerabilities; empty means the one of Go's authors.
VULNDB      ?=

# Packages whose tests start servers and Envoys run two at a time; a hung one
# is stopped with its stacks printed. Of parallel tests, which mostly wait, four run
# at a time on any machine.
TESTFLAGS   := -timeout 10m -p 2 -parallel 4
# The streams and the API, and what they are compared with; BENCH=. is all, which
# takes long.
ROWS        ?= .
BENCH       ?= ^Benchmark(Streams|Sent|Accepted|Poll|API|Rest)$$
COUNT       ?= 1
SOAK        ?=
HOSTILE     ?=
MATRIX      ?= 3
FAULTS      ?= 2m

export CGO_ENABLED := 0
# The programs, the checks and the tests share what they compile, in any folder.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build .tools/envoy ## route 200 requests through a real Envoy by each rule of the bookshop
	@go run ./internal/e2e/demo

.PHONY: test
test: .tools/envoy .tools/kubectl ## run all tests
	go test $(TESTFLAGS) ./...

.PHONY: conformance
conformance: ## compare the answers in Envoy's v1 API with those of Pilot 0.7.1; DIR=folder of cases
	@go run ./internal/conformance $(if $(DIR),"$(DIR)")

.PHONY: matrix
matrix: .tools/kube-apiserver ## compare who may do what with a real kube-apiserver, which takes about ten minutes to build the first time; MATRIX=1 for all cells
	go test ./internal/e2e -timeout 1h -run TestMatrixAgainstKubernetes -v -matrix $(MATRIX)

.PHONY: build
build: ## build bin/pilot-api, bin/istioctl and bin/pilot-agent
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: run
run: build ## run pilot-api on 127.0.0.1:8080 with its data in .demo/data
	bin/pilot-api --data-dir .demo/data

.PHONY: bookshop
bookshop: ## run the backends of examples/bookshop for a session by hand
	@go run ./internal/e2e/bookshop

.PHONY: bench-scale
bench-scale: ## measure servers of 1,000 to 20,000 services with their proxies, for the table in docs/operations.md; ROWS=regexp
	go test -run '^$$' -bench 'Scale/$(ROWS)' -benchtime 1x -timeout 2h ./internal/scale

.PHONY: bench
bench: .tools/envoy ## measure how soon and at what cost a change is on the proxies, and the API; BENCH=regexp, COUNT=n
	go test -run '^$$' -bench '$(BENCH)' -count $(COUNT) -timeout 1h -p 1 ./... | tee /dev/stderr | awk -f internal/tools/bench.awk

.PHONY: soak
soak: build .tools/envoy ## break etcd and pilot-api under clients, watchers, informers and Envoys, judge what they were told, and measure honest clients beside greedy ones; SOAK='-duration 10m -seed 1' FAULTS=10m
	@go run ./internal/consistency/soak $(SOAK)
	go test ./internal/e2e -timeout 1h -run TestNoRequestFails -v -faults $(FAULTS)
	go test ./server -timeout 1h -run 'TestInformersThroughFaults|TestLeaderIsCutOff' -v -thorough
	go test ./internal/overload -timeout 1h -run TestGreedyNeighbours -v -soak $(FAULTS)

.PHONY: hostile
hostile: ## judge the budgets by combinations of hostile objects, 10,000 of them by default; HOSTILE='-combinations 1000 -seed 7 -processes 1'
	go test ./internal/hostile -timeout 48h -v -combinations 10000 $(HOSTILE)

.PHONY: lint
lint: .tools/staticcheck ## format, vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [[ -n $$unformatted ]]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	.tools/staticcheck ./...

.PHONY: check
check: lint build .tools/envoy .tools/kubectl ## the one command before sending: lint, and the tests under the race detector
	CGO_ENABLED=1 go test -race $(TESTFLAGS) ./...

.PHONY: supply
supply: build ## check licences, write bills of materials (bin/*.cdx.json), look for known vulnerabilities (VULNDB=file:///folder for a copy of the database), and build twice to compare
	@cd internal/tools/supply && go build -o ../../../.tools/supply .
	@for program in pilot-api istioctl pilot-agent; do \
		.tools/supply licences bin/$$program > bin/$$program.licences && .tools/supply sbom bin/$$program > bin/$$program.cdx.json || exit 1; \
		echo "$$program: $$(wc -l < bin/$$program.licences) modules, all with known licences; bin/$$program.cdx.json"; \
	done
	@internal/tools/reproduce.sh
	@internal/tools/vulnerabilities.sh "$(GOVULNCHECK)" "$(VULNDB)"

.PHONY: docs
docs: ## write the generated pages anew: fields and their tests, mesh settings, commands and flags
	go test ./schema -run Reference -update
	go test ./compile -run FieldsPage -update
	go test ./mesh -run SettingsPage -update
	go test ./internal/traffic -run MatchingPage -update
	go test ./cmd/istioctl -run 'TestDocs|TestMessagesPage' -update
	go test ./cmd/pilot-api ./cmd/pilot-agent -run FlagsPage -update

.PHONY: envoy kubectl
envoy: .tools/envoy ## fetch Envoy into .tools; what needs it does so by itself
kubectl: .tools/kubectl ## build kubectl into .tools

.PHONY: tools
tools: .tools/envoy .tools/kubectl .tools/staticcheck ## fetch or build what tests and checks need into .tools

.tools/envoy: internal/tools/envoy.sh internal/tools/envoy.txt
	@internal/tools/envoy.sh $@
	@touch -h $@

.tools/kubectl: internal/tools/kubectl/main.go internal/tools/kubectl/go.mod
	@echo "kubectl: building $(KUBERNETES) (two minutes the first time)"
	@cd internal/tools/kubectl && go build \
		-ldflags '-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES)' -o ../../../$@ . || \
		{ echo "kubectl: not built; the Go module proxy must be reachable (go env GOPROXY) to fetch k8s.io/kubectl" >&2; exit 1; }

.tools/kube-apiserver: internal/tools/kube-apiserver/build.sh internal/tools/kube-apiserver/aggregation.go
	@internal/tools/kube-apiserver/build.sh $(KUBERNETES) .tools

.tools/staticcheck: Makefile
	@echo "staticcheck: building $(STATICCHECK)"
	@GOBIN=$(CURDIR)/.tools go install $(STATICCHECK) || \
		{ echo "staticcheck: not built; the Go module proxy must be reachable (go env GOPROXY)" >&2; exit 1; }
	@touch $@

.PHONY: clean
clean: ## remove what was built and the demo's data; .tools stays
	rm -rf bin .demo
