#!/usr/bin/env bash
# clients/scenario.md with curl, jq and b3sum: scenario.sh DIRECTORY DOWNLOADS.
set -euo pipefail

api=$RESOLUTE_URL/resolute.api
token=

# authorization: prints the header with the token, which does not belong on a command line that others can read.
authorization() {
    printf '%s' "${token:+Authorization: Bearer $token}"
}

# call SERVICE/METHOD: makes a call with one answer. Standard input is the request; a failed call prints its error, too.
call() {
    curl --silent --show-error "$api.$1" --header 'Content-Type: application/json' --header @<(authorization) --data @-
}

# stream SERVICE/METHOD: makes a call with a stream of answers. Each message has five bytes before it: a zero and its
# length. What the messages say is taken out with grep.
stream() {
    local request length
    request=$(cat)
    length=$(printf '%s' "$request" | wc -c)
    { printf "$(printf '\\x00\\x%02x\\x%02x\\x%02x\\x%02x' $((length >> 24)) $((length >> 16 & 255)) $((length >> 8 & 255)) $((length & 255)))"
      printf '%s' "$request"; } |
        curl --silent --show-error --no-buffer "$api.$1" --header 'Content-Type: application/connect+json' \
            --header @<(authorization) --data-binary @-
}

# reason: reads an error and prints its reason.
reason() {
    jq --raw-output '[.details[]?.debug.reason // empty][0]'
}

directory=$1 downloads=$2

# Sign in.
no_token=$(call experiments.v1.ExperimentsService/ListExperiments <<<'{}' | reason)
token=$(jq --null-input '{userName: env.RESOLUTE_USER, password: env.RESOLUTE_PASSWORD}' |
    call experiments.v1.AccessService/Login | jq --raw-output .bearerToken)

# Create an experiment from a directory.
request_id=$(cat /proc/sys/kernel/random/uuid)
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
tar --create --gzip --directory "$directory" . | base64 --wrap 0 >"$archive"
experiment=$(jq --null-input --arg id "$request_id" --rawfile config "$directory/config.yaml" --rawfile code "$archive" \
    '{requestId: $id, spec: {configYaml: $config}, modelDefinition: $code}' |
    call experiments.v1.ExperimentsService/CreateExperiment | jq --raw-output .experiment.number)

# Watch it to its end. The stream ends with the experiment; where it breaks, ask again.
state=
until [[ $state =~ ^(COMPLETED|CANCELED|ERROR)$ ]]; do
    state=$(jq --null-input --compact-output --arg n "$experiment" '{experiments: [{key: "it", experiment: {number: $n}}]}' |
        stream experiments.v1.ExperimentsService/WatchExperiments |
        # Trials and their ends are in the stream too, with states of their own.
        { grep --text --only-matching 'EXPERIMENT_STATE_[A-Z_]*' || sleep 1; } | tail --lines 1)
    state=${state#EXPERIMENT_STATE_}
done

# Read its best trial, a metric of it, and its log.
order=$(jq --null-input --arg n "$experiment" '{experiment: {number: $n}}' | call experiments.v1.ExperimentsService/GetExperiment |
    jq --raw-output 'if .experiment.smallerIsBetter then "best_validation" else "best_validation desc" end')
trial=$(jq --null-input --arg n "$experiment" --arg order "$order" '{experiment: {number: $n}, orderBy: $order, pageSize: 1}' |
    call experiments.v1.TrialsService/ListTrials | jq '.trials[0]')
trial_id=$(jq --raw-output .trialId <<<"$trial")
series=$(jq --null-input --arg id "$trial_id" '{trialId: $id, group: "training", name: "loss"}' | call metrics.v1.MetricsService/GetSeries)
log=$(jq --null-input --arg id "$trial_id" '{filter: {trialId: $id, origins: ["task"]}, pageSize: 1000}' |
    call logs.v1.LogsService/ListLines | jq '[.lines[]?.message]')

# Download its checkpoint and verify the digests.
checkpoint_id=$(jq --raw-output .latestCheckpointId <<<"$trial")
files=$(jq --null-input --arg id "$checkpoint_id" '{checkpointId: $id, pageSize: 10000}' |
    call checkpoints.v1.CheckpointsService/ListFiles | jq '[.files[] | select(.digest) | {(.path): .digest}] | add')
while IFS=$'\t' read -r path digest; do
    [[ /$path/ != */../* ]] || { echo "$path lies outside of its checkpoint" >&2; exit 1; }
    mkdir -p "$(dirname "$downloads/$path")"
    jq --null-input --compact-output --arg id "$checkpoint_id" --arg path "$path" '{checkpointId: $id, path: $path}' |
        stream checkpoints.v1.CheckpointsService/ReadFile | { grep --text --only-matching '"data": *"[^"]*"' || true; } |
        while IFS='"' read -r _ _ _ data _; do base64 --decode <<<"$data"; done >"$downloads/$path"
    program=${digest%%:*}sum
    [[ $program != blake3sum ]] || program=b3sum
    "$program" --check --quiet <<<"${digest#*:}  $downloads/$path"
done < <(jq --raw-output 'to_entries[] | [.key, .value] | @tsv' <<<"$files")

# Get a typed error for each of five mistakes; the first is above.
no_such=$(call experiments.v1.ExperimentsService/GetExperiment <<<'{"experiment": {"number": 999999}}' | reason)
wrong_config=$(call experiments.v1.ExperimentsService/ValidateConfig <<<'{"configYaml": "searcher: {name: no_such_search}"}' | reason)
ended=$(jq --null-input --arg n "$experiment" '{experiment: {number: $n}}' | call experiments.v1.ExperimentsService/PauseExperiment | reason)
same_id=$(jq --null-input --arg id "$request_id" --rawfile config "$directory/config.yaml" \
    '{requestId: $id, spec: {configYaml: ($config + "\ndescription: another")}}' |
    call experiments.v1.ExperimentsService/CreateExperiment | reason)

jq --null-input --compact-output --argjson trial "$trial" --argjson series "$series" --argjson log "$log" --argjson files "$files" \
    --arg state "$state" --arg experiment "$experiment" --arg no_token "$no_token" --arg no_such "$no_such" \
    --arg wrong_config "$wrong_config" --arg ended "$ended" --arg same_id "$same_id" '{
        experiment: $experiment | tonumber, state: $state, trial: $trial.number | tonumber, best: $trial.bestValidation.value,
        steps: [$series.steps[] | tonumber], losses: $series.values, log: $log, files: $files,
        failures: {noToken: $no_token, noSuchExperiment: $no_such, wrongConfig: $wrong_config, endedExperiment: $ended,
            sameRequestId: $same_id}}'
