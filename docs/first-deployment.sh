#!/usr/bin/env bash
# Adds what a deployed stack says about itself to first-deployment.txt: docs/first-deployment.sh STACK
#
# It changes nothing in the account, and calls Calculator.Add and Doorbell.Ring at the stack's URL. It replaces the key,
# the account's id, the stack's host names, addresses and the user's name, but not the values of parameters, such as
# issuers, nor the callers in the log. A section whose command fails has its error.
set -uo pipefail

stack=${1:?the name of the stack}
file=first-deployment.txt
codes=()
export AWS_PAGER=''

describe() { aws cloudformation describe-stacks --stack-name "$stack" --output text --query "Stacks[0].$1"; }
output() { describe "Outputs[?OutputKey=='$1'].OutputValue" 2>/dev/null; }
account=$(aws sts get-caller-identity --output text --query Account 2>/dev/null)
url=$(output ToolboxUrl) function=$(output ToolboxArn) log=$(output ToolboxLogName)
key=$(aws secretsmanager get-secret-value --secret-id "$stack/TOOLS_API_KEY" --output text --query SecretString 2>/dev/null)
host=${url#*://}

# Replaces what others must not read, in what a section prints.
redact() {
  local text name
  text=$(cat)
  for name in key account host; do
    [ -z "${!name}" ] || text=${text//"${!name}"/[$name]}
  done
  sed -E -e 's/[A-Za-z0-9._%+-]+@([A-Za-z0-9-]+\.)+[A-Za-z]{2,}/[address]/g' \
    -e 's#(user|assumed-role|federated-user)/[^" ]+#\1/[name]#g' -e 's/(AKIA|ASIA)[A-Z0-9]{16}/[access key]/g' \
    -e 's/[a-z0-9-]+\.(execute-api|lambda-url)\./[host].\1./g' \
    -e 's/(^|[^0-9A-Za-z-])[0-9]{12}([^0-9]|$)/\1[account]\2/g' <<<"$text"
}

# Adds a section: section NAME COMMAND...
section() {
  local name=$1
  shift
  echo "== $name" >>"$file"
  "$@" 2>&1 | redact >>"$file"
  codes+=("$name: ${PIPESTATUS[0]}")
  echo >>"$file"
}

versions() {
  date -u +%FT%TZ && uname -sm && git log -1 --format=%H
  aws --version && sam --version && cargo lambda --version
}
settings() {
  aws lambda get-function-configuration --function-name "$function" --output json --query '{version: Version,
    runtime: Runtime, architectures: Architectures, memory: MemorySize, timeout: Timeout, size: CodeSize, state: State,
    update: LastUpdateStatus, log: LoggingConfig, variables: keys(Environment.Variables)}'
}
failed_events() {
  aws cloudformation describe-stack-events --stack-name "$stack" --output text --query \
    "StackEvents[?contains(ResourceStatus, 'FAILED')].[Timestamp, LogicalResourceId, ResourceStatus, ResourceStatusReason]"
}
request() { curl -sS -i --max-time 40 "$@" | cut -c 1-1000; }
with_key() { request -H "Authorization: Bearer $key" "$@"; }
mcp() {
  with_key "$url/mcp" -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' -d \
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "Calculator_Add", "arguments": {"a": 10, "b": 5}}}'
}
direct() {
  local kinds folder
  kinds=$(aws lambda get-function-configuration --function-name "$function" --output text \
    --query Environment.Variables.TOOLS_EVENTS) || return
  [[ $kinds = *direct* ]] || { echo 'The stack answers no direct calls.'; return; }
  folder=$(mktemp -d)
  echo "$add" >"$folder/call"
  aws lambda invoke --function-name "$function" --payload "fileb://$folder/call" "$folder/answer" && cat "$folder/answer"
}
lines() {
  aws logs filter-log-events --log-group-name "$log" --filter-pattern "$1" --output text --query 'events[].[message]' |
    tail -n 20
}
metrics() {
  # shellcheck disable=SC2016 # It is JMESPath.
  aws cloudwatch list-metrics --namespace "$stack" --output text \
    --query 'Metrics[].[MetricName, Dimensions[].Value | join(`, `, @)]' | sort -u
}
alarms() {
  aws cloudwatch describe-alarms --alarm-name-prefix "$stack-" --output text --query \
    'MetricAlarms[].[AlarmName, StateValue, StateUpdatedTimestamp, StateReason]'
}
costs() {
  aws ce get-cost-and-usage --time-period "Start=$(date -u +%Y-01-01),End=$(date -u +%F)" --granularity MONTHLY \
    --metrics UnblendedCost --group-by Type=DIMENSION,Key=SERVICE --output text \
    --query 'ResultsByTime[-1].[TimePeriod.Start, Groups[].[Keys[0], Metrics.UnblendedCost.Amount]]'
}
add='{"tool_id": "Calculator.Add", "input": {"a": 10, "b": 5}}'
ring="{\"tool_id\": \"Doorbell.Ring\", \"call_id\": \"ring-$RANDOM$RANDOM\", \"input\": {\"doorbell_id\": \"doorbell42\"}}"

section versions versions
section 'stack: parameters' describe 'Parameters[].[ParameterKey, ParameterValue]'
section 'stack: outputs' describe 'Outputs[].[OutputKey, OutputValue]'
section 'stack: state' describe '[StackStatus, CreationTime, LastUpdatedTime]'
section 'stack: failed events' failed_events
section 'function: settings' settings
section health request "$url/health"
section list with_key "$url/tools"
section 'call: OXP' with_key "$url/tools/call" -d "$add"
section 'call: MCP' mcp
section 'call: wrong key' request "$url/tools/call" -H 'Authorization: Bearer wrong' -d "$add"
section 'call: first' with_key "$url/tools/call" -d "$ring"
section 'call: repeated' with_key "$url/tools/call" -d "$ring"
section 'call: direct' direct
section 'log: calls' lines '"call_id"'
section 'log: reports' lines '"platform.report"'
section 'log: cold starts' lines initDurationMs
section 'log: errors' lines ERROR
section metrics metrics
section alarms alarms
section costs costs
section 'exit codes' printf '%s\n' "${codes[@]}"
echo "$file: $(grep -c ': 0$' <<<"$(printf '%s\n' "${codes[@]}")") of ${#codes[@]} sections succeeded; read it before you send it"
