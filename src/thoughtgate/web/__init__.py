"""The console: the web pages where reviewers decide approval requests and watch the gates."""
