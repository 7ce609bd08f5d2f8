from library.members import Member

LIMIT = 2
FEE_PER_DAY = 20


def lend(member, title):
    if not isinstance(member, Member):
        raise TypeError("only members borrow books")
    if len(member.loans) >= LIMIT:
        raise ValueError(f"{member.name} has {LIMIT} books already")
    member.loans.append(title)


def late_fee(days):
    return max(0, days) * FEE_PER_DAY
