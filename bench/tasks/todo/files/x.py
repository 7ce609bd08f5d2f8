# TODO one
print(1)
# TODO two
