# Everything a newcomer needs: `make demo` and `make test`. `make help` lists the rest.

SWIFT ?= swift
SOURCES := Package.swift Sources Tests Fuzz $(wildcard Benchmarks/Package.swift Benchmarks/*/Package.swift) \
	$(wildcard Benchmarks/Sources Benchmarks/Soak/Sources Benchmarks/Measure/Sources Benchmarks/Peers/Sources Benchmarks/Wire/Sources/HeadParsing Benchmarks/Cache/Sources/CacheStore Benchmarks/Hello Benchmarks/HelloPeer Benchmarks/Dependencies) Examples
export SWIFT TIME ENTRY INPUT JOBS

# Tests that run at once. Swift's pool has a thread for each processor; hundreds of tests on two of them would make each
# other's clocks run out. Read by Swift Testing.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 8
# Tests to run: FILTER='MartletWireTests' make test
FILTER ?=
# What `make sanitize-quick` builds and runs: where memory is handled by hand, and where tasks and threads meet.
SANITIZE_TARGETS ?= MartletTransportTests,MartletConnectionsTests
# What `make test-traits` builds, and which of it it runs: what differs when a trait is on.
TRAITS_TARGETS := MartletClientTests,MartletImagesTests
TRAITS := Brotli,Zstandard,Metrics,Tracing,ImageDecoding
TRAITS_FILTER ?= ^(MartletClientTests\.(Brotli|Zstandard|ContentCodingPlan|ContentDecoder|DecompressionBomb|HostileCoding|DefaultField|CallMeters|CallSpan)Tests|MartletImagesTests\..*)/
# Links smaller programs: lld, compact relocations, no table of symbols for other libraries, equal functions merged.
SMALL := -Xswiftc -use-ld=lld -Xlinker -z -Xlinker pack-relative-relocs -Xlinker --no-export-dynamic -Xlinker --icf=safe
# What `make soak` runs: ONLY='in-flight storm' some of it, MINUTES how long the storm lasts, COUNT and SEED for a try.
ONLY ?=
MINUTES ?= 60
COUNT ?=
SEED ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-traits examples bench soak compare-curl fuzz fuzz-reproduce fuzz-coverage fuzz-minimise build release lint format docs sanitize sanitize-quick sanitize-thread sanitize-address clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Fetch, post, upload and download over TLS from an origin on this machine, and show what happened
	@Scripts/install.sh build
	@$(SWIFT) run martlet demo

test: ## Run all tests, also against nginx, Apache, httpbin, squid and others (FILTER=… runs some)
	@Scripts/install.sh test
	@Scripts/test.sh '$(FILTER)' --parallel

test-traits: ## Run the tests of what the package traits Brotli, Zstandard, Metrics, Tracing and ImageDecoding add, with these on
	@Scripts/install.sh traits
	@MARTLET_TEST_TARGETS=$(TRAITS_TARGETS) Scripts/test.sh '$(TRAITS_FILTER)' --parallel --traits $(TRAITS) --scratch-path .build-traits

examples: ## Build the packages in Examples and run their tests (ONLY='Crawler Downloader' some of them)
	@Scripts/install.sh build
	@Scripts/examples.sh $(ONLY)

bench: ## Measure Martlet beside its peers, in turns (QUICK=1 in minutes; ONLY='small-*' WITH='martlet*,wrk' ROUNDS=3 SECONDS=2)
	@Scripts/install.sh bench
	@python3 Benchmarks/Runner $(if $(QUICK),--quick) $(if $(ONLY),--only '$(ONLY)') $(if $(WITH),--with '$(WITH)') \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(LIST),--list)

soak: ## Run the long scenarios, above an hour in all: floods, faults, leaks (ONLY=name, MINUTES=n; list: soak list)
	@Scripts/install.sh soak
	@Scripts/soak.sh '$(ONLY)' '$(MINUTES)' '$(COUNT)' '$(SEED)'

compare-curl: ## Run random command lines with curl and with martlet, and print where they differ (SEED=1 COUNT=200)
	@Scripts/install.sh test
	@$(SWIFT) build --product martlet
	@python3 Scripts/compare-curl.py --seed '$(or $(SEED),1)' --count '$(or $(COUNT),200)'

build: ## Build all for debugging, tests too
	@Scripts/install.sh build
	@$(SWIFT) build --build-tests

release: ## Build the optimised martlet program, which runs where there is no Swift, and print where it is
	@Scripts/install.sh build
	@$(SWIFT) build -c release --product martlet --static-swift-stdlib $(SMALL)
	@$(SWIFT) build -c release --show-bin-path

lint: ## Check the format of all Swift code
	@Scripts/install.sh lint
	@$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)

format: ## Rewrite all Swift code in the house format
	@Scripts/install.sh lint
	@$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

docs: ## Build the documentation of all libraries as a static site, in .build/documentation (BASE=path that it is served under)
	@Scripts/install.sh build
	@$(SWIFT) build
	@Scripts/docs.sh .build/documentation '$(BASE)'
	@echo 'serve .build/documentation, for example: martlet serve .build/documentation'

sanitize: sanitize-thread sanitize-address ## Run all tests under the thread sanitizer, then under the address sanitizer

sanitize-quick: ## The part that CI runs: transport and connections under both sanitizers, the traits' tests under the second
	@$(MAKE) sanitize-thread MARTLET_TEST_TARGETS=$(SANITIZE_TARGETS)
	@Scripts/install.sh traits
	@$(MAKE) sanitize-address MARTLET_TEST_TARGETS=$(SANITIZE_TARGETS),$(TRAITS_TARGETS) MARTLET_TRAITS=$(TRAITS) \
		FILTER='$(TRAITS_FILTER)|^($(subst $(comma),|,$(SANITIZE_TARGETS)))\.'

comma := ,
sanitize-thread sanitize-address: sanitize-%:
	@Scripts/install.sh test
	@MARTLET_TEST_TARGETS='$(MARTLET_TEST_TARGETS)' MARTLET_TRAITS='$(MARTLET_TRAITS)' Scripts/sanitize.sh $* '$(FILTER)'

fuzz: ## Fuzz each entry point for TIME seconds, 60 by default (ENTRY=… one of them, JOBS=… at once)
	@Scripts/install.sh build
	@Scripts/fuzz.sh run

fuzz-reproduce: ## Run one INPUT=… of the fuzzer's again
	@Scripts/install.sh build
	@Scripts/fuzz.sh reproduce

fuzz-coverage: ## Print how much of the library the fuzzer's inputs reach
	@Scripts/install.sh build
	@Scripts/fuzz.sh coverage

fuzz-minimise: ## Write what the fuzzer found new into Fuzz/Corpus
	@Scripts/install.sh build
	@Scripts/fuzz.sh minimise

clean: ## Delete all that was built
	rm -rf .build .build-tsan .build-asan .build-fuzz .build-traits .build-examples Benchmarks/.build Benchmarks/*/.build Benchmarks/.results
