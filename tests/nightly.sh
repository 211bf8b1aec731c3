#!/usr/bin/env bash
# The long forms of tests that .ci/run has a short form of: all of the corpus under sanitisers,
# two hundred kills, fuzzing, hostile submissions in containers, all cheats in Landlock.
set -euo pipefail
exec "$(dirname "$0")/run.sh" --nightly "$@"
