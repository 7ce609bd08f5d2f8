from dataclasses import dataclass

VAT_PERCENT = 20


@dataclass
class Invoice:
    number: str
    amount: int
    amount_paid: int = 0

    def gross(self):
        return self.amount + self.amount * VAT_PERCENT // 100

    def open_amount(self):
        return self.gross() - self.amount_paid
