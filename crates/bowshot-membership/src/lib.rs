//! Who is in the cluster, and how its nodes reach one another.
