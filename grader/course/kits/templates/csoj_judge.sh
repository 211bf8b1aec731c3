#!/usr/bin/env bash
# Grades /mnt/work. The last line of the output is the JSON that CSOJ reads; the same stands in
# .csoj/result.json, where newer versions look. If the grader itself fails, there is neither, and the
# step fails: CSOJ marks the submission Failed and gives no score.
set -uo pipefail
here=/opt/sgemm-grader
work=/mnt/work
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export SGEMM_GRADER_CACHE=$scratch/cache LANG=C.UTF-8 COLUMNS=100
cp -r "$here/cache" "$SGEMM_GRADER_CACHE" # an image may be read-only

rm -rf "$work/.csoj" || exit 3 # what was handed in by this name is no result

timeout --kill-after=10 <<seconds>> grade "$work" --lab "$here/lab.yaml" \
  --sandbox <<sandbox>> --memory-mb <<memory_mb>> \
  --no-report --out "$scratch/out" --format csoj >"$scratch/result.json"
status=$?
if ((status > 1)) || [[ ! -s $scratch/result.json ]]; then
  echo "The grader failed (status $status). This says nothing about the submission." >&2
  exit 3
fi
mkdir -p "$work/.csoj" && cp "$scratch/result.json" "$work/.csoj/result.json" || exit 3
cat "$scratch/result.json"
