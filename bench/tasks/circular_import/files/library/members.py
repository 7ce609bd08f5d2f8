from library.loans import LIMIT, late_fee


class Member:
    def __init__(self, name):
        self.name = name
        self.loans = []
        self.fees = 0

    def give_back(self, title, days_late=0):
        self.loans.remove(title)
        self.fees += late_fee(days_late)

    def describe(self):
        return f"{self.name}: {len(self.loans)} of {LIMIT} books, {self.fees} cents to pay"
