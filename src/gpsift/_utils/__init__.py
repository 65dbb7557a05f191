"""Tools that every room uses and no user calls: arrays, linear algebra, chunks of rows, progress, parallel work."""
