"""Starting, watching and ending other processes, and finding their descendants."""
