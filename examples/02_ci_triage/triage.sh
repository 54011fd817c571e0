#!/usr/bin/env bash
# Triage of a flaky engine build in CI: builds until the builds decide, and leaves what a person, and a CI server, need to know.
#
#     triage.sh MODEL [BUILDER OPTIONS...] -- CHECK COMMAND...
#
# Set by environment variables:
#     OUT         where everything goes                               (triage)
#     MOST        how many builds it may take                         (60)
#     CONFIDENCE  how probable a conclusion must be                   (0.95)
#     TRT         what runs before polygraphy, e.g. "polygraphy-trt-sim --" to rehearse without a GPU; nothing by default
#
# Exit status: that of `polygraphy debug diff-tactics --exit-code` (0 if no build failed), or 1 if a step could not be done.
set -uo pipefail

out=${OUT:-triage}
read -ra trt <<<"${TRT-}"
run() { ${trt[@]+"${trt[@]}"} polygraphy debug "$@"; }
die() {
    echo "triage: $*" >&2
    exit 1
}

options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
done
[ ${#options[@]} -gt 0 ] && [ $# -gt 1 ] || die 'usage: triage.sh MODEL [BUILDER OPTIONS...] -- CHECK COMMAND...'
shift
model=${options[0]}
[ -e "$model" ] || die "$model: no such file"

# A run that a CI server cut short goes on where it was, if its directory was kept.
resume=()
[ -e "$out/trials.jsonl" ] && resume=(--resume)

run build "${options[@]}" --save-tactics replay.json --artifacts replay.json --artifacts-dir "$out" \
    --until "confident=${CONFIDENCE:-0.95}" --max-iterations "${MOST:-60}" ${resume[@]+"${resume[@]}"} \
    --hide-fail-output --check "$@"
status=$?
# 3: the builds do not decide. The reports say so, too.
[ $status -eq 0 ] || [ $status -eq 3 ] || die "debug build ended with status $status"

# What is missing in one report must not keep the others from being written.
failed=0
run diff-tactics --dir "$out" --format junit --output "$out/junit.xml" || [ $? -eq 3 ] || failed=1
run diff-tactics --dir "$out" --format markdown --output "$out/summary.md" || [ $? -eq 3 ] || failed=1
run report --dir "$out" -o "$out/report.html" || failed=1
[ $failed -eq 0 ] || die "not all reports could be written"
if [ -n "${GITHUB_STEP_SUMMARY-}" ]; then
    cat "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi

run diff-tactics --dir "$out" --exit-code
