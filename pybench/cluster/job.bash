say() { printf '%s %s: %s\n' "$(date -u +%FT%TZ)" "$job" "$*"; }

# The last task of an array has SLURM_JOB_ID equal to SLURM_ARRAY_JOB_ID: only array and index name a task alone.
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}
child='' caught=0 asked=0 ended=0

# SIGUSR1 comes checkpoint_s before the time is up: the run at hand is finished, or stopped if it takes too long.
checkpoint() {
  caught=1 asked=1
  say 'asked to checkpoint'
  [ -n "$child" ] || return 0
  kill -USR1 "$child"
  { sleep "$insist_after_s" && kill -USR1 "$child"; } >/dev/null 2>&1 &
}
trap checkpoint USR1

# SIGTERM comes when Slurm ends the job (its time, scancel, a preemption), and SIGKILL soon after.
trap 'caught=1 ended=1; say "ended by Slurm"; [ -z "$child" ] || kill -TERM "$child"' TERM

# In the background, because bash delays traps while anything runs in the foreground.
run() {
  "$@" & child=$!
  [ "$asked" = 0 ] || kill -USR1 "$child" # asked while there was no child yet
  while :; do
    caught=0
    wait "$child"
    code=$?
    [ "$caught" = 1 ] || break
  done
  child=''
}

# Starts this task again from the script's beginning, where it does what is missing.
again() {
  rm -rf -- "${scratch:-}"
  if [ "${SLURM_RESTART_COUNT:-0}" -ge "$max_requeues" ]; then
    say "has been started again $max_requeues times: not once more (max_requeues)"
  elif scontrol requeue "$job"; then
    say 'is queued again'
  fi
  exit 75
}
