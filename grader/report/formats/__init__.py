"""Result → the formats that course systems, CI and editors read; pure."""
