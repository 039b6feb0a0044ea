"""Study 3: sentiment equity (Kiritchenko and Mohammad 2018)."""
