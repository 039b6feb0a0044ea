"""Methods that make text classifiers lean less on their authors' style, one a file."""
