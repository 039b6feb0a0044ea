"""Study 6: any table of items, groups and outcomes."""
