# Everything that is done to this project by hand or by CI. `make` lists it.
# Needed: Go; for `e2e` and `bench` also Java 17 and Maven, which fetches Kafka;
# for `rules` and `e2e` Debian's package prometheus; for `e2e` also chromium and npm.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# Tools are pinned here and not in go.mod, whose dependencies are those of the
# binary: golangci-lint alone would add hundreds.
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0

# All build tags, so that no file escapes a check.
TAGS := e2e

# Packages whose tests run goroutines against each other.
CONCURRENT := ./api/... ./cmd/... ./processors/... ./views/... ./e2e/process ./e2e/bench

FUZZTIME ?= 30s
CHECKS   ?= 2000

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  \033[36m%-15s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/deliverystat
	go build -trimpath -o bin/deliverystat ./cmd/deliverystat

.PHONY: run
run: ## Run the demo: broker, simulator and service in one process
	go run ./cmd/deliverystat demo

.PHONY: test
test: ## Unit, property and in-memory broker tests
	go test ./...

.PHONY: test-race
test-race: ## The tests of the concurrent packages, watched for data races
	go test -race -short -shuffle=on $(CONCURRENT)

.PHONY: test-property
test-property: ## The property tests, many more cases (CHECKS=2000)
	go test -run Property ./... -rapid.checks=$(CHECKS)

.PHONY: fuzz
fuzz: ## Each fuzz target in turn (FUZZTIME=30s)
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

.PHONY: bench
bench: ## Compare with a bare consumer on a real Kafka (BENCHFLAGS)
	go run ./e2e/bench $(BENCHFLAGS)

.PHONY: e2e
e2e: ## Black box tests on a real Kafka (E2EFLAGS; E2E_RACE=1 builds with -race)
	go test -tags e2e -count=1 -p 1 -timeout 20m $(E2EFLAGS) ./e2e/... ./processors/exactlyonce

.PHONY: chaos
chaos: ## Each fault, and a mixed schedule, on three brokers (SEED, DURATION=45s)
	go test -tags chaos -count=1 -p 1 -v -timeout 20m ./e2e/chaos

.PHONY: soak
soak: ## A long mixed schedule of faults (SEED, DURATION=20m)
	DURATION=$${DURATION:-20m} go test -tags chaos -count=1 -v -timeout 2h -run TestAMixedSchedule ./e2e/chaos

.PHONY: schemathesis
schemathesis: ## Hold a running service against its OpenAPI description
	.ci/schemathesis

.PHONY: rules
rules: ## Check and unit-test the rules of Prometheus (needs promtool)
	promtool check rules deploy/prometheus/recording.yaml deploy/prometheus/alerts.yaml
	promtool test rules deploy/prometheus/*_test.yaml

.PHONY: chart
chart: ## Hold the Helm chart and the manifests against schemas (needs python3)
	.ci/chart

.PHONY: image
image: ## Build the container image into bin/image, without a container engine
	deploy/image/build bin/image

.PHONY: cover
cover: ## Coverage of the tests, as coverage.html
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -html=coverage.out -o coverage.html
	go tool cover -func=coverage.out | tail -1

.PHONY: lint
lint: ## golangci-lint and go vet, for every build tag
	go vet -tags $(TAGS) ./...
	$(GOLANGCI_LINT) run --build-tags $(TAGS)

.PHONY: fmt
fmt: ## Format all Go files
	$(GOLANGCI_LINT) fmt

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what is called
	$(GOVULNCHECK) ./...

.PHONY: generate
generate: ## Make generated files anew
	go generate ./...

.PHONY: check-generate
check-generate: ## Fail if a generated file or go.mod is not current
	.ci/check-generated

.PHONY: ci
ci: ## What CI runs
	.ci/run

.PHONY: clean
clean: ## Delete what was built, fetched or left by failed tests
	rm -rf bin state coverage.out coverage.html e2e/.cache
