"""Mutation tests of the pure core: does a test notice when the code does otherwise?"""
