# Two commands are enough: `make demo` to look at it, `make test` to change it. CONTRIBUTING.md has the others.
PYTHON = .venv/bin/python
# A file's tests stay together and in order: those with a browser come last, for its event loop runs until the end.
# Two processes, each with an order of sets of its own; tests/test_names.py.
SIDE_BY_SIDE = --tx popen//env:PYTHONHASHSEED=1 --tx popen//env:PYTHONHASHSEED=2 --dist loadfile --no-loadscope-reorder
PYTEST = $(PYTHON) -m pytest
MANAGE = $(PYTHON) manage.py
BUILD_DOCS = NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict --clean

# Without this, each program that the suite and the demo start compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-release test-tools check docs bench lock look release clean

demo:
	@tools/venv.sh requirements.txt
	@exec $(MANAGE) demo

# What the product does, without what is tried before each release.
test: test-tools
	$(PYTEST) $(SIDE_BY_SIDE) -m 'not release' $(ARGS)

# What is tried before each release: whole installations, packages, upgrades, other versions of PostgreSQL, soaks.
test-release: test-tools
	@tools/install-sdk-tests.sh
	@tools/install-older-sdks.sh
	@tools/install-helm.sh
	$(PYTEST) $(SIDE_BY_SIDE) -m release $(ARGS)

test-tools:
	@tools/venv.sh requirements-dev.txt
	@tools/install-browser.sh
	@tools/install-servers.sh

check:
	@tools/venv.sh requirements-dev.txt
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/djlint --check --lint --quiet templates
	.venv/bin/djlint --check --lint --quiet --profile jinja templates/jinja2
	.venv/bin/lint-imports
	$(PYTHON) tools/class_names.py
	.venv/bin/mypy
	$(MANAGE) makemigrations --check --dry-run
	$(MANAGE) collectstatic --noinput --verbosity 0
	MEMADMIN_HTTPS=yes MEMADMIN_SECRET_KEY=`$(PYTHON) -c 'import secrets; print(secrets.token_urlsafe(50))'` \
	    MEMADMIN_MAIL_URL=smtp+tls://mail.invalid:587 MEMADMIN_URL=https://memadmin.invalid \
	    $(MANAGE) check --deploy --fail-level WARNING
	@! grep -n '://' requirements*.txt || { echo 'A lock file names a download host.'; exit 1; }
	$(BUILD_DOCS)

# The documentation as a site in build/docs/, without a network; a broken link stops it.
docs:
	@tools/venv.sh requirements-dev.txt
	$(BUILD_DOCS)
	@echo 'Open build/docs/index.html.'

# Figures as JSON and as a table; see docs/performance.md.
bench:
	@tools/venv.sh requirements-dev.txt
	$(PYTHON) -m tests.benchmarks $(ARGS)
	$(PYTHON) -m tests.benchmarks.users
	$(PYTHON) -m tests.benchmarks.stores
	$(PYTHON) -m tests.benchmarks.encryption
	$(PYTHON) -m tests.benchmarks.audit
	$(PYTHON) -m tests.benchmarks.memories
	$(PYTHON) -m tests.benchmarks.recall
	$(PYTHON) -m tests.benchmarks.erasure
	$(PYTHON) -m tests.benchmarks.retention

# Every page at both widths and in both themes, as pictures in test-results/look/.
look:
	@tools/venv.sh requirements-dev.txt
	@tools/install-browser.sh
	$(PYTEST) tests/browser -m release --look test-results/look $(ARGS)

# What is published of a version, in dist/; see CONTRIBUTING.md.
release:
	@tools/venv.sh requirements-dev.txt
	$(PYTHON) tools/release.py $(ARGS)

# Keeps the versions that are there; `make lock ARGS=--upgrade` takes the newest that pyproject.toml allows.
lock: COMPILE = .venv/bin/uv --no-config pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(ARGS)
lock:
	@[ -x .venv/bin/uv ] || tools/venv.sh requirements-dev.txt
	$(COMPILE) pyproject.toml --output-file requirements.txt --extra console
	$(COMPILE) pyproject.toml --output-file requirements-client.txt --constraint requirements.txt
	$(COMPILE) pyproject.toml --output-file requirements-dev.txt --extra console --group dev --constraint requirements.txt
	$(COMPILE) --no-deps --output-file requirements-sdk-tests.txt --group sdk-tests
	$(COMPILE) --no-deps --output-file requirements-chart-tests.txt --group chart-tests

# Leaves .memadmin, which holds the embedded database.
clean:
	rm -rf .venv build dist test-results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
