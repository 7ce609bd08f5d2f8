from calc import average

assert average([2, 4]) == 3
assert average([5]) == 5
print("ok")
