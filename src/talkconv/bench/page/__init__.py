"""The page of `talkconv bench all`: tables in Markdown and pictures, from the JSON beside it."""
