//! Programs of others that call the toolbox. They need what `tests/all` installs.
