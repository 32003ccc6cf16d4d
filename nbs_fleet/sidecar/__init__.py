"""The watcher of one agent: observe, decide, act. What it concludes goes to the supervisor as reports."""
