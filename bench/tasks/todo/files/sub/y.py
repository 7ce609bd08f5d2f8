a = 1  # TODO three
