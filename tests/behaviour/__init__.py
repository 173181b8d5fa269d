"""What each option does in each situation: every row of docs/behaviour.md, and its proof."""
