"""Starting, watching and ending other programs; which process started which."""
