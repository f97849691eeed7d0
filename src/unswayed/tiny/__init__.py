"""The built-in tiny judge: a real language model small enough to ship, and the items it judges.

`items` holds its world (words, latent weights, generators), `answers` what it was trained on,
`train` the script that made the shipped weights, `backend` the model `tiny/judge`.
"""
