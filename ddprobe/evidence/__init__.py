"""Files collected elsewhere → facts, recognised by content. Pure over documents: opening them is done at the edge."""
