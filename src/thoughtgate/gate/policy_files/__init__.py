"""Which policy files a gate uses: where they are, whose they are and who has trusted them."""
