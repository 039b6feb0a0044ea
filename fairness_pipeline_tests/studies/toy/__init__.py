"""The smallest study there is: do two lists of numbers, one a group, have the same mean?"""
