"""Makes a demo backend wrong in one way in every response: `"base_url": "demo:chat?defect=no_done"`."""
