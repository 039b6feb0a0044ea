"""Study 2: language-model bias (RedditBias)."""
