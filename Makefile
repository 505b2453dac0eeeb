# Start with `make demo` and `make test`. `make help` lists all commands.

SWIFT ?= swift
SOURCES := Package.swift Sources Tests Fuzz $(wildcard Benchmarks/Package.swift Benchmarks/*/Package.swift) \
	$(wildcard Benchmarks/Sources Benchmarks/Soak/Sources Benchmarks/Measure/Sources Benchmarks/Peers/Sources Benchmarks/Wire/Sources/HeadParsing Benchmarks/Cache Benchmarks/Hello Benchmarks/HelloPeer Benchmarks/Dependencies) Examples
export SWIFT TIME ENTRY INPUT JOBS

# The maximum number of concurrent tests, read by Swift Testing. Swift's pool has one thread per processor: on two of
# them, hundreds of concurrent tests would exceed each other's timeouts.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 8
# The tests to run, all by default: FILTER='MartletWireTests' make test
FILTER ?=
# The package traits to enable in the tests, `all` or names joined by commas. They build into `.build-traits`.
TRAITS ?=
traits = $(if $(filter all,$(TRAITS)),--enable-all-traits,$(if $(TRAITS),--traits $(TRAITS)))
install_for_tests = Scripts/install.sh test$(if $(TRAITS), && Scripts/install.sh traits)
# Options for smaller programs: lld, compact relocations, no dynamic symbol table, and a section for each function, so
# that unused functions are removed and equal ones are merged.
SMALL := -Xswiftc -use-ld=lld -Xswiftc -Xfrontend -Xswiftc -function-sections -Xlinker -z \
    -Xlinker pack-relative-relocs -Xlinker --no-export-dynamic -Xlinker --icf=safe
# Options of `make soak`: ONLY='in-flight storm' selects scenarios, MINUTES is the length of the storms, and COUNT and
# SEED configure a single run.
ONLY ?=
MINUTES ?= 60
COUNT ?=
SEED ?=

.DEFAULT_GOAL := help
.PHONY: help demo test examples bench soak compare-curl fuzz fuzz-reproduce fuzz-coverage fuzz-minimise build release lint format docs sanitize sanitize-thread sanitize-address clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Fetch, post, upload and download over TLS from an origin on this machine, and show the results
	@Scripts/install.sh build
	@$(SWIFT) run martlet demo

test: ## Run all tests, also against nginx, Apache, httpbin, squid and others (FILTER=… runs some, TRAITS=all enables the package traits)
	@$(install_for_tests)
	@Scripts/test.sh '$(FILTER)' --parallel $(if $(TRAITS),$(traits) --scratch-path .build-traits)

examples: ## Build the packages in Examples and run their tests (ONLY='Crawler Downloader' selects some, CONFIGURATION=release optimizes)
	@Scripts/install.sh build
	@Scripts/examples.sh $(ONLY)

bench: ## Compare Martlet with its peers in alternating runs (QUICK=1 in minutes; ONLY='small-*' WITH='martlet*,wrk' ROUNDS=3 SECONDS=2)
	@Scripts/install.sh bench
	@python3 Benchmarks/Runner $(if $(QUICK),--quick) $(if $(ONLY),--only '$(ONLY)') $(if $(WITH),--with '$(WITH)') \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(LIST),--list)

soak: ## Run the long scenarios, more than two hours in total: floods, faults, leaks (ONLY=list prints the names; ONLY=name, MINUTES=n)
	@Scripts/install.sh soak
	@Scripts/soak.sh '$(ONLY)' '$(MINUTES)' '$(COUNT)' '$(SEED)'

compare-curl: ## Run random command lines with curl and with martlet, and print the differences (SEED=1 COUNT=200)
	@Scripts/install.sh test
	@$(SWIFT) build --product martlet
	@python3 Scripts/compare-curl.py --seed '$(or $(SEED),1)' --count '$(or $(COUNT),200)'

build: ## Build everything for debugging, including the tests
	@Scripts/install.sh build
	@$(SWIFT) build --build-tests

release: ## Build the optimized martlet program, which runs without a Swift installation, and print its directory
	@Scripts/install.sh build
	@$(SWIFT) build -c release --product martlet --static-swift-stdlib $(SMALL)
	@$(SWIFT) build -c release --show-bin-path

lint: ## Check the format of all Swift code
	@Scripts/install.sh lint
	@$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)

format: ## Format all Swift code
	@Scripts/install.sh lint
	@$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

docs: ## Build the documentation of all libraries as a static site, in .build/documentation (BASE=path that it is served under)
	@Scripts/install.sh build
	@$(SWIFT) build
	@Scripts/docs.sh .build/documentation '$(BASE)'
	@echo 'serve .build/documentation, for example: martlet serve .build/documentation'

sanitize: sanitize-thread sanitize-address ## Run all tests under the thread sanitizer, then under the address sanitizer (FILTER=…, TRAITS=all, MARTLET_TEST_TARGETS=…)

sanitize-thread sanitize-address: sanitize-%:
	@$(install_for_tests)
	@Scripts/sanitize.sh $* '$(FILTER)' $(traits)

fuzz: ## Fuzz each entry point for TIME seconds, 60 by default (ENTRY=… selects one, JOBS=… runs several concurrently)
	@Scripts/install.sh build
	@Scripts/fuzz.sh run

fuzz-reproduce: ## Run one INPUT=… of the fuzzer again
	@Scripts/install.sh build
	@Scripts/fuzz.sh reproduce

fuzz-coverage: ## Print the coverage of the library by the fuzzer's inputs
	@Scripts/install.sh build
	@Scripts/fuzz.sh coverage

fuzz-minimise: ## Add the fuzzer's new inputs to Fuzz/Corpus
	@Scripts/install.sh build
	@Scripts/fuzz.sh minimise

clean: ## Delete all build results
	rm -rf .build .build-tsan .build-asan .build-fuzz .build-traits .build-examples Benchmarks/.build Benchmarks/*/.build Benchmarks/.results
