import sqlite3

import pandas as pd
from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class SqlPullData(Plugin):
    db = None

    def __call__(self, query: str):
        if self.db is None:
            self.db = sqlite3.connect(self.config.get("sqlite_db_path"))
        df = pd.read_sql_query(query, self.db)
        return df, f"there are {len(df)} rows in the result"
