from library.loans import lend
from library.members import Member

ann = Member("Ann")
lend(ann, "Emma")
print(ann.describe())
