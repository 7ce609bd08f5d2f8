import sqlite3


class Store:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)
        self.connection.execute("CREATE TABLE IF NOT EXISTS members (number INTEGER PRIMARY KEY, name TEXT)")

    def add(self, name):
        with self.connection:
            self.connection.execute("INSERT INTO members (name) VALUES (?)", (name,))

    def find(self, name):
        rows = self.connection.execute("SELECT number, name FROM members WHERE name = ?", (name,))
        return rows.fetchall()
