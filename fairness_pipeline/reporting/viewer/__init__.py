"""A folder of pages in which every pair behind every verdict can be read: from disk, or from any web server."""
