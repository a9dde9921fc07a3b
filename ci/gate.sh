#!/usr/bin/env bash
# The gate in any CI: SUITE, and optionally AGAINST, COMMENT and ARGS, come from the environment.
# Exit 0 passed, 100 blocked, 101 cannot tell (also while there is no baseline), 1 something is wrong with the set-up.
set -u
mkdir -p fairtrial-gate
rm -f fairtrial-gate/gate.junit.xml fairtrial-gate/gate.json fairtrial-gate/report.html # of another suite in this job
options=(--against "${AGAINST:-auto}" -o fairtrial-gate/gate.junit.xml -o fairtrial-gate/gate.json -o fairtrial-gate/report.html)
[ "${COMMENT:-true}" = true ] && options+=(--comment auto)
read -r -d '' -a more <<< "${ARGS:-}" || true
fairtrial gate "$SUITE" --quiet "${options[@]}" ${more[@]+"${more[@]}"}
code=$?
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  result=error
  case $code in 0|100|101)  # the verdict itself: --unsure decides about the exit code only
    # -I: a pull request may have a json.py
    result=$(python3 -I -c 'import json; print(json.load(open("fairtrial-gate/gate.json", encoding="utf-8"))["result"])') ||
      result=error ;;
  esac
  echo "name=$(tr -c '[:alnum:]._\n-' '-' <<< "$SUITE")" >> "$GITHUB_OUTPUT" # an artefact has no / in its name
  echo "result=$result" >> "$GITHUB_OUTPUT"
fi
exit $code
