"""Builds a folder of pages that show every pair behind every verdict, from disk or from any web server."""
