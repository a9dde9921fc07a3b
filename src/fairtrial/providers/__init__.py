"""What is known of model providers: how they are reached, what their models take, and what their replies mean."""
