#!/usr/bin/env bash
# Grades one submission and writes results.json. If the grader itself fails, there is no
# results.json: Gradescope then says that the autograder failed, and nobody gets a zero.
set -uo pipefail
root=/autograder
grade=$root/source/grade_here.sh
results=$root/results

mkdir -p "$results"
rm -f "$results/results.json"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
install -d -m 700 -o 65534 -g 65534 "$scratch/out"
chmod a+x "$scratch"
chmod -R a+rX "$root/submission" # follows no link

timeout --kill-after=10 <<seconds>> "$grade" "$root/submission" \
  --no-report --out "$scratch/out" --json >"$scratch/result.json"
status=$?
if ((status > 1)) || [[ ! -s $scratch/result.json ]]; then
  ((status != 124)) || echo "The grading took longer than <<seconds>> s." >&2
  ((status != 2)) || { echo "Nothing was graded; the line above says why." >&2; exit 2; }
  echo "The grader failed (status $status). This says nothing about the submission: run it again." >&2
  exit $((status > 1 ? status : 3))
fi
"$grade" export gradescope "$scratch/result.json" --to - --visibility <<shown.visibility>> \
  --hidden-visibility <<shown.hidden>> --stdout-visibility <<shown.stdout>> \
  >"$scratch/results.json" || exit 3
mv "$scratch/results.json" "$results/results.json"
