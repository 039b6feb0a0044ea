"""Study 1: dialogue fairness (Liu et al. 2020; Liu 2022, chapters 2 and 3)."""
