"""Stand-ins for hosted services on the loopback, answering in the shapes of their documented APIs: pages, limits, errors, expiry."""
