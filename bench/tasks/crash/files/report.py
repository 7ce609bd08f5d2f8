import json

with open("data.json") as file:
    data = json.load(file)

total = 0
for item in data["items"]:
    total += item["price"] * item["cuont"]
print("total:", total)
