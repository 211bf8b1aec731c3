#!/usr/bin/env bash
# Style, types, tests. With --all first, the tests marked slow too. Other arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ! -x .venv/bin/python ]]; then
  python3 -m venv .venv
fi
if ! .venv/bin/python -c 'import grader, babel, resvg_py, pytest, xdist, hypothesis, mypy, copydetect, clang_format, clang_tidy, jsonschema, check_jsonschema, build' 2>/dev/null; then
  .venv/bin/pip install --quiet --editable '.[test]'
  # CuTe's headers. Its Python side, which nobody needs here, would bring 200 MB more.
  .venv/bin/pip install --quiet --no-deps 'nvidia-cutlass>=4.2'
fi
# The judge of the pages' accessibility; the tests that ask it are skipped where npm is missing.
if [[ ! -e tests/support/axe/node_modules/axe-core ]] && command -v npm >/dev/null; then
  npm ci --prefix tests/support/axe --ignore-scripts --no-audit --no-fund --silent
fi
export PATH="$PWD/.venv/bin:$PATH"
# The tests start hundreds of processes; without it, each would compile the grader's Python again.
unset PYTHONDONTWRITEBYTECODE

ruff check .
ruff format --check .
shopt -s globstar
clang-format --dry-run --Werror {grader,ptxsim,tests/{hardware,support,whole}}/**/*.[ch]pp \
  {grader/{backends,problems},starters,examples,benchmarks/{native,reduction},reference/{hgemm,reduction,sgemm-row}}/**/*.cu*
which=(-m "not slow")
if [[ ${1:-} == --all ]]; then
  which=(-m "not short")
  shift
fi
mypy & # alone, it would leave a core idle for half a minute
types=$!
# Long tests are not kept for the end: who is idle takes over what waits.
pytest -n 2 --dist worksteal "${which[@]}" "$@" || failed=$?
wait "$types" || failed=$?
exit "${failed:-0}"
