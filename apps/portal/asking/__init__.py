"""How conversations are shown: answers with their marks, what was looked up, sources, the stream that draws an answer as it is written."""
