"""What kitchens share: grids, walking distances, joint plans, pictures."""
