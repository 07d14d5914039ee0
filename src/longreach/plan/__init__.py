"""Goal + model + machine + release to a Plan. Pure.

May import `rules` and the rooms below it.
"""
