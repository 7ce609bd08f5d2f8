from shop import total

print("the total is", total([1, 2, 3]))
