"""Test doubles that ship with the package: playbook, fake clock, sample server, scripted agent."""
