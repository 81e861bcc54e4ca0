//! Tables of other databases, read by their ADBC drivers.
