#!/usr/bin/env bash
# One agent's sidecar as a shell loop, the baseline of the benchmarks: once a second it looks whether the pane lives,
# whether its screen moved, what is unread in the chat and what is pending on the bus; to an agent at rest it types
# that something waits. LOG gets a line for each thing that it noticed: a word and the wall second.
#
# usage: sidecar.sh SOCKET PANE HANDLE CHAT EVENTS LOG
set -u
socket=$1 pane=$2 handle=$3 chat=$4 events=$5 log=$6
before='' told=''

while :; do
    dead=$(tmux -S "$socket" display-message -p -t "$pane" '#{pane_dead}' 2>/dev/null)
    if [ "$dead" != 0 ]; then
        echo "dead $(date +%s.%N)" >>"$log"
        exit 0
    fi
    hash=$(tmux -S "$socket" capture-pane -p -t "$pane" | sha256sum | cut -d' ' -f1)
    cursor=$(grep "^$handle=" "$chat.cursors" 2>/dev/null | cut -d= -f2)
    messages=$(sed '1,/^---$/d' "$chat" | grep -c .)
    pending=$(ls "$events" | grep -c '\.event$')
    unread=$((messages - 1 - ${cursor:--1}))
    if [ "$hash" = "$before" ] && [ "$unread" -gt 0 -o "$pending" -gt 0 ] && [ "$messages $pending" != "$told" ]; then
        echo "noticed $(date +%s.%N)" >>"$log"
        tmux -S "$socket" send-keys -t "$pane" -l "$unread unread, $pending events"
        tmux -S "$socket" send-keys -t "$pane" Enter
        told="$messages $pending"
    fi
    before=$hash
    sleep 1
done
