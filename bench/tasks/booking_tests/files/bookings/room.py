from bookings.ranges import overlaps


class Room:
    def __init__(self, seats):
        self.seats = seats
        self.booked = []

    def book(self, start, end, people=1):
        """Book the room, or raise ValueError and book nothing."""
        if start >= end:
            raise ValueError("a booking ends after its start")
        if people > self.seats:
            raise ValueError("too many people")
        for other in self.booked:
            if overlaps(other, (start, end)):
                raise ValueError("the room is taken")
        self.booked.append((start, end))
