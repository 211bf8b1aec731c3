#!/usr/bin/env bash
# Style, types, tests; of the long tables of cases a sample that changes with each commit. Options:
#   --all      every case, as .ci/run does
#   --nightly  the long forms that not even --all has
#   --profile  at the end the wall time of each test beside its CPU time
# Others go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

which=(-m "not slow and not nightly" --sample)
profile=()
while [[ ${1:-} == --@(all|nightly|profile) ]]; do
  case $1 in
    --all) which=(-m "not nightly") ;;
    --nightly) which=(-m nightly) ;;
    --profile) profile=(-p tests.support.profile) ;;
  esac
  shift
done

[[ -x .venv/bin/python ]] || python3 -m venv .venv
if [[ ! -x .venv/bin/shellcheck ]] || ! .venv/bin/python -c 'import grader, babel, resvg_py, auditwheel, pytest, xdist, hypothesis, mypy, copydetect, clang_format, clang_tidy, jsonschema, check_jsonschema, build, ptxsim, scikit_build_core, hatchling, shtab' 2>/dev/null; then
  # Most modules of the packages are never imported, so none is compiled ahead.
  .venv/bin/pip install --quiet --no-compile --editable ./ptxsim --editable .
  .venv/bin/python -c "from grader.run import engine_library; engine_library().compiled()" & # the longest compilation of all
  .venv/bin/pip install --quiet --no-compile --editable ./ptxsim --editable '.[test]'
  # CuTe's headers. Its Python side, which nobody needs here, would bring 200 MB more.
  .venv/bin/pip install --quiet --no-compile --no-deps 'nvidia-cutlass>=4.2'
  wait $!
fi
# The judge of the pages' accessibility. Without it, the tests that ask it are skipped; in CI they fail.
if [[ ! -e tests/support/axe/node_modules/axe-core ]] && command -v npm >/dev/null; then
  npm ci --prefix tests/support/axe --ignore-scripts --no-audit --no-fund --loglevel error ||
    echo "npm cannot download axe-core: tests of accessibility are skipped, but for CI, where they fail" >&2
fi
export PATH="$PWD/.venv/bin:$PATH"
# The tests start hundreds of processes; without it, each would compile the grader's Python again.
unset PYTHONDONTWRITEBYTECODE

ruff check .
ruff format --check .
shopt -s globstar
clang-format --dry-run --Werror {grader,ptxsim/src,tests/{base,support,whole}}/**/*.[ch]pp \
  tests/*/data/*.c{u,pp} {grader/{run,problems},starters,examples,benchmarks/{native,research/reduction},reference/{[!s],s[!g],sgemm-}*}/**/*.cu*
# ptxsim's own tests need no second one.
PTXSIM_ENGINE=$(python -c 'from grader.run import engine_library; print(engine_library().compiled())')
export PTXSIM_ENGINE
mypy & # alone, it would leave a core idle for half a minute
types=$!
# Long tests are not kept for the end: who is idle takes over what waits.
python -m pytest -n 2 --dist worksteal "${which[@]}" "${profile[@]}" "$@" || failed=$?
wait "$types" || failed=$?
exit "${failed:-0}"
