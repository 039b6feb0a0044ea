"""Tables of a user: items, groups and outcomes of any kind, in files of any tool."""
