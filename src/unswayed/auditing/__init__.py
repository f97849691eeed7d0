"""Audits: permute, judge, map back, measure."""
