# One command for everything that CI checks, in the environment you are in.
.PHONY: check test format lint types

check: format lint types test

format:
	ruff format --check .

lint:
	ruff check .

types:
	mypy

test:
	pytest
