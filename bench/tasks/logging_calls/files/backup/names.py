def choose_name(path):
    """Return the path, or one with a number if it is taken."""
    number = 1
    goal = path
    while goal.exists():
        goal = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    if goal != path:
        print("warning: {} is taken, {} is used".format(path.name, goal.name))
    return goal
