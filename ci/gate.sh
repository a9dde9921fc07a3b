#!/usr/bin/env bash
# The gate in any CI: SUITE, and optionally AGAINST, COMMENT and ARGS, come from the environment.
# Exit 0 passed, 100 blocked, 101 cannot tell, 1 something is wrong with the set-up.
set -u
mkdir -p fairtrial-gate
options=(--against "${AGAINST:-auto}" -o fairtrial-gate/gate.junit.xml -o fairtrial-gate/gate.json -o fairtrial-gate/report.html)
[ "${COMMENT:-true}" = true ] && options+=(--comment auto)
read -r -a more <<< "${ARGS:-}"
fairtrial gate "$SUITE" --quiet "${options[@]}" ${more[@]+"${more[@]}"}
code=$?
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  case $code in 0) result=passed ;; 100) result=failed ;; 101) result="cannot tell" ;; *) result=error ;; esac
  echo "result=$result" >> "$GITHUB_OUTPUT"
fi
exit $code
