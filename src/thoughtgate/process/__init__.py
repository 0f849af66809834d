"""Starting, watching and ending other processes, and finding their ancestors and descendants."""
