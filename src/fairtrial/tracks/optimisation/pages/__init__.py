"""The pages of prompt styles and problems."""
