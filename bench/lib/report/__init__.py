"""The report: JSON lines in, one HTML file out that needs no network. `page.write` is the way in."""
