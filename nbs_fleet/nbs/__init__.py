"""The nbs tools' own files: chats, cursors, bus, control inbox and registry, presence; readers and writers."""
