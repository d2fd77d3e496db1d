"""Results for people: tables in the terminal, reports that open offline, and files that go into a paper."""
