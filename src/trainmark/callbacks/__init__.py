"""The hook as callbacks for other libraries' training loops. Only the user's script imports them."""
