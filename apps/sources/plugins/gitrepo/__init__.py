"""Reading a Git repository over checked connections. Imported where it is used: it loads dulwich."""
