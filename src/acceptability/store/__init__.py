"""What is kept between commands: the outputs of models in one SQLite file, saved runs, and files of scores.

Opening the store is in two files: ``scores.py`` is the open store (reading and writing), and ``database.py`` the file
(format, creation, connection, locks, errors). ``recovery.py`` is read only when the file seems damaged.
"""
