"""The local web application: judge sentences, evaluate a table, browse suites and runs in a browser."""
