say() { printf '%s %s: %s\n' "$(date -u +%FT%TZ)" "$job" "$*"; }

# The last task of an array has SLURM_JOB_ID equal to SLURM_ARRAY_JOB_ID: only array and index name a task alone.
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}

# SIGUSR1 comes checkpoint_s before the time is up: the run at hand is finished, or stopped if it takes too long.
# SIGTERM comes when Slurm ends the job (its time, scancel, a preemption), and SIGKILL soon after.
# Without a child they are noted, with one handed on: at no moment is one lost, or handed on twice.
asked=0 ended=0
note_signals() {
  trap 'asked=1; say "asked to checkpoint"' USR1
  trap 'ended=1; say "ended by Slurm"' TERM
}
note_signals

checkpoint() {
  kill -USR1 "$child"
  { sleep "$insist_after_s" && kill -USR1 "$child"; } >/dev/null 2>&1 &
}

end() {
  ended=1
  kill -TERM "$child"
}

# In the background, because bash delays traps while anything runs in the foreground.
run() {
  "$@" & child=$!
  trap 'caught=1; say "asked to checkpoint"; checkpoint' USR1
  trap 'caught=1; say "ended by Slurm"; end' TERM
  [ "$asked" = 0 ] || checkpoint
  [ "$ended" = 0 ] || end
  while :; do
    caught=0
    wait "$child"
    code=$?
    [ "$caught" = 1 ] || break
  done
  note_signals
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
