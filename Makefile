# Short names for what cargo and the two binaries do. `make` alone lists them.
# CI names a program that checks our own crates while it compiles them.
LINTING_COMPILER ?=
CARGO = cargo $(if $(LINTING_COMPILER),--config 'build.rustc-workspace-wrapper="$(LINTING_COMPILER)"')
# What a guest, a script or a command may do, what leaves for the network, what an author types, what clients and browsers make of it,
# and limits on requests know no store, and damaged folders and full disks are the embedded one's own: they are tried once.
STORELESS = $(addsuffix ::,abi abuse::edge abuse::runs bash_tool browser certificates charsets client_libraries clients damage disk examples generated home hostile \
	hostile_answers instructions limits mcp_conformance mcp_messages mcp_resources overload prompts provider proxies refused sandbox session settings \
	telemetry unknown walks ways_out workbench) \
	$(addprefix approvals::,assistants_ client_without_) $(addprefix budget::,call_file_ concurrent_ connection_ limits_page_ log_line_ \
	manifest_ prompt_ request_ run_resource_) $(addprefix coverage::,every_body_ every_response_ every_route_refuses_missing_ \
	every_route_refuses_other_) $(addprefix mcp_connecting::,call_ client_ older_ session_) $(addprefix mcp_endpoints::,cancelled_call_ \
	official_ session_exposes_) $(addprefix mcp_oauth::,conformance_ official_) $(addprefix sink::,sink_must_ unwanted_) \
	$(addprefix abuse::values::,recursive_ references_ search_ too_many_ value_with_ wrong_values_)
# The author's command and its toolkits: mostly compilers, one at a time. They follow the tests that are over first.
AUTHORS = $(addsuffix ::,authoring cassettes dev distribution documents imports languages manual packaging)
# Tests that start PostgreSQL themselves, mostly for several servers.
ON_POSTGRES = $(addsuffix ::,database jobs nodes) $(addprefix abuse::records::,all_writers_on_two_ deleted_project_ publications_on_two_) \
	approvals::answers_are_erased_ mounts::lapsed_uploads_ recipes::protection::older_action_ tool_router_sessions::unused_sessions_ \
	callbacks::concurrent_callbacks_on_three_ doctor::doctor_leaves_an_empty_ $(addprefix faults::,kill_before_commit_ \
	late_refusal_ stale_lease_) recipes::script_that_lost_ recipes::versions::deleted_project_ $(addprefix renewals::,each_expired_ \
	long_outage_) secrets::postgres_files_ trigger_logs::old_events_ wait_for_connections::connection_on_another_
# Tests that read the files of the embedded store.
ON_FILES = seals::moved_or_altered_ crash::nothing_is_lost_while_space_
SKIP = $(addprefix --skip ,$(1))

# Every test but those over HTTP, with those of the toolkits: the patterns match the names of all test targets but `e2e`, which
# cargo cannot leave out of a workspace without choosing other features.
OTHER_TESTS = $(CARGO) test --workspace --no-fail-fast --lib --bins --test '[!e]*' --test 'e[!2]*' && $(CARGO) test --workspace --doc \
	&& cargo test --manifest-path toolkits/Cargo.toml
OVER_HTTP = $(CARGO) test --workspace --test e2e --

# Tests wait half of their time: for servers that start, for timers and for disks. So more run at once than there are
# processors: those over HTTP on both stores, and the others beside them.
export RUST_TEST_THREADS ?= $(shell expr $$(nproc) '*' 3 / 2)

# Folder below which `make install` puts the commands.
PREFIX ?= $(HOME)/.local
# Target of `make install` and `make dist`; empty: this machine.
TARGET ?=
# Folder with both programs; neither they nor the toolkits are then built.
BIN ?=
PROGRAMS = $(or $(BIN),target/$(if $(TARGET),$(TARGET)/)release)

# Always the whole workspace: a single package would choose other features, and rebuild most dependencies for them.
.PHONY: help run install dist programs components test soak bench bench-peers interpreter check format licences build clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

run: ## build server and author's command, publish two toolkits, run one tool through the API, stay up, publish the others
	packaging/with-clock "building the commands" $(CARGO) build --profile quick --workspace --bin toolhost --bin toolkit
	target/quick/toolkit setup
	packaging/with-clock "building two toolkits" sh -ec 'for name in documents hackernews; do target/quick/toolkit build toolkits/$$name; done'
	packaging/publish-others target/quick & trap "kill $$! 2>/dev/null" EXIT; \
		target/quick/toolhost serve --toolkits toolkits/dist --demo README.md

install: programs components ## build everything, and install both commands, toolkits and manual below PREFIX (~/.local)
	packaging/lay-out "$(PROGRAMS)" "$(DESTDIR)$(PREFIX)"

dist: programs components ## make and try the files of a release in dist/: archive, .deb, image, installer, list of crates, checksums
	packaging/dist "$(PROGRAMS)" "$(or $(TARGET),$(shell rustc --print host-tuple))"

components: programs
	$(if $(BIN),,"$(PROGRAMS)/toolkit" setup && "$(PROGRAMS)/toolkit" build --all)

programs:
	$(if $(BIN),,$(CARGO) build --release $(if $(TARGET),--target $(TARGET)) --workspace --bin toolhost --bin toolkit)

test: ## every test: units, toolkits, and the real server over HTTP, on each store
	tests/setup
	$(CARGO) build --workspace --all-targets
	target/debug/toolkit setup
	target/debug/toolkit build --all
	target/debug/toolkit check --all
	$(CARGO) test --workspace --no-run
	cargo test --manifest-path toolkits/Cargo.toml --no-run
	($(OTHER_TESTS); others=$$?; $(OVER_HTTP) $(AUTHORS) && exit $$others) >target/other-tests.log 2>&1 & others=$$!; \
	TEST_LOG=trace TEST_STORE=postgres RUST_TEST_THREADS=$$(nproc) $(OVER_HTTP) $(call SKIP,$(STORELESS) $(AUTHORS) $(ON_FILES)) \
		>target/postgres.log 2>&1 & postgres=$$!; \
	trap "kill $$others $$postgres" INT TERM; result=0; \
	$(OVER_HTTP) $(call SKIP,instructions:: $(AUTHORS) $(ON_POSTGRES)) || result=$$?; \
	echo "the same on PostgreSQL:"; wait $$postgres || result=$$?; cat target/postgres.log; \
	echo "all other tests:"; wait $$others || result=$$?; cat target/other-tests.log; exit $$result
	$(OVER_HTTP) instructions::

soak: ## the tests over HTTP with as many kills, cuts and damages as before a release: hours
	tests/setup
	$(CARGO) build --workspace --all-targets
	target/debug/toolkit setup
	target/debug/toolkit build --all
	TEST_SIZE=release $(CARGO) test --workspace --test e2e
	TEST_SIZE=release TEST_STORE=postgres $(CARGO) test --workspace --test e2e

# The same targets for both, so that the dependencies have the same features.
BUILD_FOR_BENCH = $(CARGO) build --release --workspace --bins --bench call --bench search

bench: ## speed and memory, side by side with a bare HTTP handler
	$(BUILD_FOR_BENCH)
	target/release/toolkit setup
	target/release/toolkit build tests/components/echo
	$(CARGO) bench --workspace --bench call -- "$(CURDIR)/tests/components/echo/dist/echo.wasm"
	target/release/toolkit build --all
	tests/bench/search/manifests target/search
	$(CARGO) bench --workspace --bench search -- "$(CURDIR)/target/search-figures.json" \
		"$(CURDIR)"/tests/bench/search/queries.txt "$(CURDIR)"/tests/bench/search/tuning.txt "$(CURDIR)"/target/search/*.json
	target/release/bench

# Features that `wasmtime serve` needs to compile, and those that make it fast.
SERVE_FEATURES = run,serve,component-model-async,cranelift,parallel-compilation,pooling-allocator
INSTALL_PEER = cargo install --locked --root target/peers --target-dir target/peers/build

bench-peers: ## the same tool on `wasmtime serve` and hyper-mcp, which it installs in target/peers
	$(INSTALL_PEER) --no-default-features --features $(SERVE_FEATURES) wasmtime-cli@48.0.8
	$(INSTALL_PEER) hyper-mcp@0.2.3
	$(BUILD_FOR_BENCH)
	target/release/toolkit setup
	target/release/toolkit build tests/components/echo
	cargo build --release --locked --target wasm32-unknown-unknown --target-dir target/peers/guests \
		--manifest-path tests/components/peers/Cargo.toml
	target/release/bench n

interpreter: ## compile the guest of imports again, after a change of the SDK
	$(CARGO) build --workspace --bin toolkit
	target/debug/toolkit interpreter toolkit-sdk/cli/interpreter

check: format licences ## formatting, lints, licences and banned crates
	$(CARGO) clippy --workspace --all-targets -- -D warnings

format:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path toolkits/Cargo.toml --all --check

licences:
	$(CARGO) deny check bans licenses sources

build:
	$(CARGO) build --workspace --all-targets

clean: ## remove what was built; data directories stay
	$(CARGO) clean
	$(CARGO) clean --manifest-path toolkits/Cargo.toml
