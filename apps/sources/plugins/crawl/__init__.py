"""Reading a web site: which addresses belong to it, what its robots.txt and sitemaps say, which links a page has."""
