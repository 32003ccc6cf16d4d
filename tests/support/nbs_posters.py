"""A process that posts numbered messages to a chat: `python nbs_posters.py CHAT HANDLE COUNT`, begun by a line on stdin."""

from __future__ import annotations

import sys

from nbs_fleet.nbs.chat import Chat

if __name__ == "__main__":
    path, handle, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    chat = Chat(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        chat.send(handle, f"{handle} says {number}", timeout=120)
        print(number, flush=True)
