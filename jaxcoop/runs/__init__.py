"""Everything that outlives a process: the run folder, its manifest and tables, and statistics over them."""
