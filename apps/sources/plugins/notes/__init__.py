"""Documents made of blocks, as Markdown: Notion's, Feishu's, Confluence's storage format."""
