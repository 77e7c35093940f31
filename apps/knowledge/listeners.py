"""What this context does about the news of lower ones."""
