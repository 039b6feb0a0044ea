"""Study 5: annotator group bias."""
