"""What a person looks at after a run: tables, figures and one self-contained page."""
