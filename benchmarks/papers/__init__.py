"""Published studies: their numbers, and the matrices of runs that reproduce them."""
