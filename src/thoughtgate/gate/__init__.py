"""The engine: judges, holds and records calls, whatever carries the traffic."""
