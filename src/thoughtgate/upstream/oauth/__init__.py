"""OAuth towards servers: the gate signs in for its users, keeps their tokens and renews them."""
