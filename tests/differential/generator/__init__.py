"""Random tables and random queries, run on heap and on colcompress and compared. tests/generated_queries.py
is the program."""
