"""Study 4: does a text classifier decide by its author's style?"""
