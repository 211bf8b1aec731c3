#!/usr/bin/env bash
# grade as the user nobody, with the kit's lab and limits. Untrusted code never runs as root.
set -euo pipefail
root=/autograder
source=$root/source
cd "$root/cache"
command=("$root/venv/bin/grade" "$@")
if [[ ${1:-} != export ]]; then
  command+=(--lab "$source/lab.yaml" --device cpu --sandbox <<sandbox>> --memory-mb <<memory_mb>>)
fi
exec setpriv --reuid=65534 --regid=65534 --clear-groups \
  env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 COLUMNS=100 HOME="$root/cache" \
  SGEMM_GRADER_CACHE="$root/cache" "${command[@]}"
