//! Colonnade: stripe.
