"""Tests of the HTTP door; a package, so that its fixtures end with its last test."""
